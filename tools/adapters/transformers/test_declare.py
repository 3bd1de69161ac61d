import json
import os
import tempfile
import unittest

import plumbline_transformers as cli
from plumbline_hf import declare


class EngineJSON(unittest.TestCase):
    def arithmetic(self, *args, **more):
        a = declare.arithmetic(*args, **more)
        return a["dtype"], a.get("weights"), a.get("activations")

    def test_arithmetic(self):
        self.assertEqual({"dtype": "float32"}, declare.arithmetic("float32", "none"))
        self.assertEqual({"dtype": "bfloat16"}, declare.arithmetic("bfloat16", "none"))
        self.assertEqual(("float32", "int8", "int8"), self.arithmetic("float32", "torchao-int8"))
        self.assertEqual(("float32", "int8", "int8"), self.arithmetic("float32", "dynamic-int8", 255))
        # torch's kernels for x86 use seven of the eight bits: another arithmetic, another name
        self.assertEqual(("float32", "int8", "int7 in uint8"), self.arithmetic("float32", "dynamic-int8", 129))

    def test_a_quantised_checkpoint_is_never_called_what_the_gate_emulates(self):
        for q, want in (
            ({"quant_method": "gptq", "bits": 4}, "gptq, 4 bits"),
            ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "bitsandbytes, 8 bits"),
            ({"quant_method": "int8"}, "int8 (a checkpoint's own)"),
            ({}, None),
        ):
            a = declare.arithmetic("float32", "none", config={"quantization_config": q})
            self.assertEqual(want, a.get("weights"), q)

    def test_the_file(self):
        with tempfile.TemporaryDirectory() as d:
            model = os.path.join(d, "m")
            os.mkdir(model)
            with open(os.path.join(model, "config.json"), "w") as f:
                json.dump({"quantization_config": {"quant_method": "awq", "bits": 4}}, f)
            a = cli.arguments(["--model", model + "/", "--protocol"])
            side = cli.Side(a)
            side.engine_json(d)
            with open(os.path.join(d, "engine.json"), encoding="utf-8") as f:
                got = json.load(f)
        self.assertEqual(
            ["transformers (awq, 4 bits)", "f32", "f32", "float32", "awq, 4 bits", "m", "cpu"],
            [got[k] for k in ("name", "layers", "logits", "dtype", "weights", "model", "device")],
        )
        self.assertNotIn("activations", got)
        self.assertNotIn("probes", got)

    def test_another_arithmetic_is_another_engine(self):
        for want, asked in (
            ("transformers", ("float32", "none")),
            ("transformers (bfloat16)", ("bfloat16", "none")),
            ("transformers (torchao-int8)", ("float32", "torchao-int8")),
        ):
            self.assertEqual(want, declare.name(declare.arithmetic(*asked)))

    def test_probes_and_what_is_not_offered(self):
        names = ["embed", "blocks.0.q", "blocks.0.resid_post", "blocks.1.q", "blocks.2.q", "final_norm"]
        self.assertEqual(
            "f32, every position but the last output token's: embed, blocks.*.q, blocks.{0}.resid_post, final_norm",
            declare.probes(names, 3),
        )
        self.assertIsNone(declare.probes([], 3))
        missing = {"blocks.0.q": "fused", "blocks.1.q": "fused", "blocks.0.k": "narrow"}
        self.assertEqual({"blocks.*.q": "fused", "blocks.{0}.k": "narrow"}, declare.not_offered(missing, 2))


if __name__ == "__main__":
    unittest.main()
