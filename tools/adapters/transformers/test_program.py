import contextlib
import io
import json
import os
import tempfile
import unittest
import unittest.mock

import plumbline_transformers as cli
from plumbline_adapter import packages
from plumbline_hf import loading, probe_names, program
from plumbline_hf.problem import LayoutError, Problem


class Names(unittest.TestCase):
    def test_lists(self):
        in_order = ["embed", "blocks.1.q", "final_norm"]
        self.assertEqual((in_order, set(in_order)), probe_names.parse("final_norm, blocks.1.q,embed", 2))
        self.assertEqual(["blocks.0.v", "blocks.1.v"], probe_names.parse("blocks.*.v", 2)[0])
        self.assertEqual(["embed", "blocks.0.resid_mid", "blocks.0.resid_post"], probe_names.parse("residual", 1)[0])
        everything, named = probe_names.parse("all", 1)
        self.assertEqual(("embed", "final_norm", set()), (everything[0], everything[-1], named))  # the logits have a dump
        self.assertEqual(([], set()), probe_names.parse("", 1))
        self.assertEqual({"logits"}, probe_names.parse("all,logits", 1)[1])

    def test_refused(self):
        for bad in ("hidden_states", "blocks.2.q", "blocks.-1.q", "blocks.*.x", "blocks.0", "Embed"):
            with self.subTest(bad), self.assertRaisesRegex(Problem, "with N from 0 to 1"):
                probe_names.parse(bad, 2)


class Protocol(unittest.TestCase):
    def serve(self, run, *requests):
        said = []
        program.serve([json.dumps(r) if not isinstance(r, str) else r for r in requests], said.append, {"name": "t"}, run)
        return said

    def test_each_line_is_answered_once(self):
        def run(request):
            if request["case"] != "ok":
                raise {"layout": LayoutError("no norm"), "problem": Problem("too long"), "bug": ValueError("x")}[request["case"]]

        ask = [{"case": c, "token_ids": [1], "text": ""} for c in ("ok", "layout", "problem", "bug", "ok")]
        self.assertEqual(
            [
                {"name": "t", "plumbline": 1, "smoke": True},
                {"case": "ok", "ok": True},
                {"case": "layout", "unsupported": "no norm"},
                {"case": "problem", "error": "too long"},
                {"case": "bug", "error": "ValueError('x')"},
                {"case": "ok", "ok": True},
            ],
            self.serve(run, {"plumbline": 1}, *ask, "  "),
        )
        self.assertIn("error", self.serve(run, "no json")[0])

    def test_a_prompt_with_the_ids_of_a_fake_is_a_prompt(self):
        self.assertEqual(0, program.fake([1, 2, 3, 4, 5], "plumbline smoke: right"))
        self.assertEqual(1, program.fake([5, 4, 3, 2, 1], "plumbline smoke: wrong"))
        self.assertIsNone(program.fake([1, 2, 3, 4, 5], "a prompt"))
        self.assertIsNone(program.fake([1, 2, 3, 4], "plumbline smoke: right"))


class Handshake(unittest.TestCase):
    """Before the model is loaded, and without torch."""

    def declared(self, config, *flags):
        with tempfile.TemporaryDirectory() as d:
            with open(os.path.join(d, "config.json"), "w") as f:
                json.dump(config, f)
            return cli.Side(cli.arguments(["--model", d, "--protocol", *flags])).declared_probes()

    def test_what_the_gate_asks_for(self):
        want = ["embed", "blocks.0.k_rope", "blocks.0.v", "blocks.0.resid_mid", "blocks.0.resid_post"]
        self.assertEqual(want, self.declared({"num_hidden_layers": 1}))
        self.assertEqual(want, self.declared({"text_config": {"num_hidden_layers": 1}, "num_hidden_layers": 9}))
        self.assertEqual(9, len(self.declared({"n_layer": 2})))
        self.assertEqual([], self.declared({}))

    def test_what_the_flags_want(self):
        self.assertEqual(["embed", "blocks.1.q"], self.declared({"n_layer": 2}, "--probes", "blocks.1.q,embed"))
        all_of_one = self.declared({"n_layer": 1}, "--probes", "all")
        self.assertEqual(("embed", "final_norm", 12), (all_of_one[0], all_of_one[-1], len(all_of_one)))
        with self.assertRaisesRegex(Problem, "N from 0 to 1"):
            self.declared({"n_layer": 2}, "--probes", "blocks.2.q")


class Packages(unittest.TestCase):
    def need(self, lacking, scheme):
        with unittest.mock.patch.object(packages, "there", lambda name: name not in lacking):
            loading.need(scheme)

    def test_need(self):
        here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "requirements.txt")
        install = "want it installed: python -m pip install --no-deps --require-hashes -r '%s'" % here
        self.need(["torchao"], "dynamic-int8")
        for lacking, scheme, want in (
            (["torch"], "none", "got no package torch, " + install),
            (["torch", "transformers"], "torchao-int8", "got no package torch, transformers, " + install),
            (["torchao"], "torchao-int8",
             "got no package torchao, " + install + "; or without it: --quantize dynamic-int8 --quantized-engine qnnpack"),
        ):  # fmt: skip
            with self.assertRaises(Problem) as caught:
                self.need(lacking, scheme)
            self.assertEqual(want, str(caught.exception))

    def test_before_the_work(self):
        err = io.StringIO()
        with tempfile.TemporaryDirectory() as d, unittest.mock.patch.object(packages, "there", lambda name: name != "torchao"):
            prompts = os.path.join(d, "p.jsonl")
            with open(prompts, "w") as f:
                f.write('{"name":"a","prompt":"x"}')
            with contextlib.redirect_stderr(err):
                self.assertEqual(1, cli.main(["--model", d, "--prompts", prompts, "--out", d + "/o", "--quantize", "torchao-int8"]))
            self.assertEqual(["p.jsonl"], os.listdir(d))
        self.assertIn("plumbline_transformers: got no package torchao", err.getvalue())


class Flags(unittest.TestCase):
    def test_one_way_in(self):
        for line in ("--prompts p --out o", "--protocol", "--ids-file i --text-file t --dir d", "--protocol --stop 1,2"):
            cli.arguments(["--model", "m", *line.split()])
        for line in ("", "--prompts p", "--protocol --dir d", "--prompts p --out o --protocol", "--ids-file i --dir d",
                     "--protocol --max-new -1", "--protocol --stop x", "--protocol --quantized-engine qnnpack"):  # fmt: skip
            with self.subTest(line), self.assertRaises(SystemExit) as caught, contextlib.redirect_stderr(io.StringIO()):
                cli.arguments(["--model", "m", *line.split()])
            self.assertEqual(2, caught.exception.code)

    def test_a_folder_that_is_not_there_is_no_id_of_the_hub(self):
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            self.assertEqual(1, cli.main(["--model", "./no such folder", "--protocol"]))
        self.assertIn("--model: ./no such folder: got no such folder", err.getvalue())

    def test_help_has_examples(self):
        out = io.StringIO()
        with self.assertRaises(SystemExit), contextlib.redirect_stdout(out):
            cli.arguments(["--help"])
        self.assertIn("plumbline gate --model ./qwen2 --candidate dumps", out.getvalue())


if __name__ == "__main__":
    unittest.main()
