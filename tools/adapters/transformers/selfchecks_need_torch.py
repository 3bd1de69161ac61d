"""Tests that what the adapter dumps is what its names say, and that it notices where it isn't. Run where torch is:

    make test-adapters-torch

Models of two or three layers with random weights are made on the fly, so no checkpoint is needed. Expected values are
computed from the weights here, by the formulas of the Llama family, and taken from transformers' own batched pass.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TQDM_DISABLE="1")

import plumbline_transformers as cli
import torch
from plumbline_hf import loading, probe_names
from plumbline_hf.capture import Dumper, Queries
from plumbline_hf.problem import LayoutError, Problem
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

IDS = [3, 1, 4, 1, 5, 9]
SHAPE = dict(
    vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.3, bos_token_id=1, eos_token_id=2, pad_token_id=0,
)  # fmt: skip


def tiny(family, **more):
    torch.manual_seed(7)
    m = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **{**SHAPE, **more})).eval()
    for p in m.parameters():
        if p.ndim == 1:
            p.data = torch.rand_like(p) + 0.5
    return m


class Numbers(unittest.TestCase):
    def setUp(self):
        self.m = tiny("qwen2")
        self.d = Dumper(self.m)
        self.got = self.d.run(IDS, [], 3, self.d.offered)

    def near(self, want, got, what):
        got = torch.tensor([list(r) for r in got])
        self.assertEqual(want.shape, got.shape, what)
        self.assertLess(float((want - got).norm() / want.norm()), 2e-6, what)

    def test_every_place_is_what_its_name_says(self):
        """At every position, prompt and output: by hand, from the weights."""
        ids = IDS + self.got.output_ids[:-1]
        n, heads, kv, width = len(ids), 4, 2, 8
        w = {k: v.double() for k, v in self.m.state_dict().items()}

        def norm(x, name):
            return x / (x.pow(2).mean(-1, keepdim=True) + self.m.config.rms_norm_eps).sqrt() * w[name]

        angle = torch.arange(n)[:, None].double() * self.m.config.rope_parameters["rope_theta"] ** -(torch.arange(0, width, 2) / width)
        cos, sin = angle.cos()[:, None], angle.sin()[:, None]

        def rope(x, h):
            x = x.view(n, h, width)
            a, b = x[..., : width // 2], x[..., width // 2 :]
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).reshape(n, -1)

        x = w["model.embed_tokens.weight"][ids]
        want = {"embed": x}
        for i in range(3):
            p = "model.layers.%d." % i
            put = lambda part, value, i=i: want.__setitem__(probe_names.block(i, part), value)  # noqa: E731
            a = norm(x, p + "input_layernorm.weight")
            q, k, v = (a @ w[p + "self_attn.%s_proj.weight" % c].T + w[p + "self_attn.%s_proj.bias" % c] for c in "qkv")
            qr, kr = rope(q, heads), rope(k, kv)
            out = []
            for h in range(heads):
                g = h // (heads // kv)
                s = qr[:, h * width : (h + 1) * width] @ kr[:, g * width : (g + 1) * width].T / width**0.5
                s = s.masked_fill(torch.triu(torch.ones(n, n, dtype=torch.bool), 1), -torch.inf).softmax(-1)
                out.append(s @ v[:, g * width : (g + 1) * width])
            out = torch.cat(out, -1)
            mid = x + out @ w[p + "self_attn.o_proj.weight"].T
            b = norm(mid, p + "post_attention_layernorm.weight")
            up = torch.nn.functional.silu(b @ w[p + "mlp.gate_proj.weight"].T) * (b @ w[p + "mlp.up_proj.weight"].T)
            mlp = up @ w[p + "mlp.down_proj.weight"].T
            x = mid + mlp
            for part, value in (("attn_norm", a), ("q", q), ("k", k), ("v", v), ("q_rope", qr), ("k_rope", kr),
                                ("attn_out", out), ("resid_mid", mid), ("mlp_out", mlp), ("resid_post", x)):  # fmt: skip
                put(part, value)
        want["final_norm"] = norm(x, "model.norm.weight")
        want["logits"] = want["final_norm"] @ w["lm_head.weight"].T
        self.assertEqual(set(want), set(self.d.offered))
        for name, value in want.items():
            self.near(value.float(), self.got.probes[name], name)
        last = len(IDS) - 1
        rows = torch.stack([want[probe_names.row(i)][last] for i in range(4)])
        self.near(rows.float(), self.got.rows, "rows")
        self.near(want["logits"][last:].float(), self.got.logits, "logits")

    def test_the_last_row_is_in_front_of_the_final_norm(self):
        with torch.no_grad():
            theirs = self.m(torch.tensor([IDS]), output_hidden_states=True).hidden_states
        for i in range(3):
            self.near(theirs[i][0, -1:], self.got.rows[i : i + 1], "row %d" % i)
        last = torch.tensor(self.got.rows[3])
        self.assertGreater(float((theirs[3][0, -1] - last).norm() / last.norm()), 0.1)
        self.near(theirs[3][0, -1:], [self.m.model.norm(last).tolist()], "the norm of row 3")

    def test_each_row_of_logits_chose_its_token(self):
        self.assertEqual([max(range(64), key=r.__getitem__) for r in self.got.logits], self.got.output_ids)
        second = self.got.output_ids[1]
        n = self.got.output_ids.index(second) + 1
        stopped = self.d.run(IDS, [second], 3, ["embed"])
        self.assertEqual((self.got.output_ids[:n], n), (stopped.output_ids, len(stopped.logits)))
        self.assertEqual(len(IDS) + n - 1, len(stopped.probes["embed"]))
        self.assertEqual(([], []), (self.d.run(IDS, [], 0).output_ids, self.d.run(IDS, [], 0).logits))

    def test_probes_change_no_bit_and_no_hook_stays(self):
        plain = self.d.run(IDS, [], 3)
        self.assertNotIsInstance(getattr(ALL_ATTENTION_FUNCTIONS["sdpa"], "__self__", None), Queries)
        self.assertEqual((plain.rows, plain.logits, {}), (self.got.rows, self.got.logits, plain.probes))
        self.assertFalse([n for n, m in self.m.named_modules() if m._forward_hooks or m._forward_pre_hooks])

    def test_ids_and_lengths_that_do_not_fit(self):
        for ids, text in (([64], "got 64, want below 64"), ([1] * 62, "want at most 64 positions")):
            with self.assertRaisesRegex(Problem, text):
                self.d.run(ids, [], 3)


class Layouts(unittest.TestCase):
    def missing(self, family, **more):
        d = Dumper(tiny(family, **more))
        self.assertEqual(4, len(d.run(IDS, [], 2, d.offered).rows))
        return {p[9:]: why for p, why in d.missing.items() if p.startswith("blocks.0.") and not p.endswith(probe_names.ROUTER)}

    def test_families(self):
        for family in ("llama", "mistral", "gemma2", "mixtral", "smollm3"):
            with self.subTest(family):
                self.assertEqual({}, self.missing(family))
        self.assertEqual({"q", "k", "v"}, set(self.missing("phi3")))
        self.assertEqual({"q", "k"}, set(self.missing("qwen3")))
        self.assertIn("resid_mid", self.missing("cohere"))  # attention and MLP read the same norm

    def test_a_cache_with_a_window(self):
        # the window's edge moves over the cache, the newest key stays last
        d = Dumper(tiny("mistral", sliding_window=4))
        got = d.run(IDS, [], 2, ["blocks.1.k", "blocks.1.k_rope"])
        for a, b in zip(got.probes["blocks.1.k"], got.probes["blocks.1.k_rope"], strict=True):
            self.assertAlmostEqual(sum(x * x for x in a), sum(x * x for x in b), places=4)  # a rotation

    def test_names_that_lie_are_found_out(self):
        self.assertIn("do not add up", self.missing("gpt_neox", num_key_value_heads=4)["mlp_out"])  # attention beside MLP
        self.assertIn("do not add up", self.missing("granite", residual_multiplier=0.5)["resid_mid"])

    def test_one_odd_layer_is_left_to_the_gate(self):
        m = tiny("llama")
        m.model.layers[1].mlp.register_forward_hook(lambda _m, _a, out: out * 2)  # in front of the adapter's: it is what is added
        self.assertEqual([], Dumper(m).notes)
        m = tiny("llama")
        inner = m.model.layers[1].forward
        m.model.layers[1].forward = lambda x, **k: inner(x, **k) * 1.5
        self.assertEqual(["resid_mid and mlp_out do not add up to resid_post in layers 1"], Dumper(m).notes)

    def test_what_is_no_plain_stream_is_refused(self):
        m = tiny("llama")
        m.model.layers[2].register_forward_pre_hook(lambda _m, args: (args[0] + 1, *args[1:]))
        with self.assertRaisesRegex(LayoutError, "the input of layer 2 is not what layer 1 put out"):
            Dumper(m)
        m = tiny("llama")
        m.model.norm.register_forward_pre_hook(lambda _m, args: (args[0] * 2,))
        with self.assertRaisesRegex(LayoutError, "the input of the final norm is not what layer 2 put out"):
            Dumper(m)

    def test_a_probe_by_name_that_is_not_offered(self):
        d = Dumper(tiny("phi3"))
        self.assertNotIn("blocks.0.q", d.wanted("all"))
        with self.assertRaisesRegex(Problem, "blocks.0.q: not offered by Phi3ForCausalLM: fused with others in qkv_proj"):
            d.wanted("blocks.0.q")


class Quantised(unittest.TestCase):
    def test_dynamic_int8(self):
        m = tiny("qwen2")
        exact = Dumper(m).run(IDS, [], 1)
        levels, more = loading.quantize(m, "dynamic-int8", "qnnpack")
        self.assertIn(levels, (255, 256))
        self.assertEqual((3 * 7 + 1, "qnnpack"), (more["linears"], more["engine"]))
        d = Dumper(m)
        got = d.run(IDS, [], 1, d.offered)
        self.assertEqual(exact.rows[0], got.rows[0])
        off = torch.tensor(got.rows[3]) - torch.tensor(exact.rows[3])
        self.assertTrue(1e-4 < float(off.norm() / torch.tensor(exact.rows[3]).norm()) < 0.2)
        self.assertEqual({}, {p: why for p, why in d.missing.items() if not p.endswith(probe_names.ROUTER)})

    @unittest.skipUnless("x86" in torch.backends.quantized.supported_engines, "no kernels for x86")
    def test_seven_bits_are_seen(self):
        torch.backends.quantized.engine = "x86"
        self.assertIn(loading.activation_levels(), (128, 129, 255, 256))
        side = cli.Side(cli.arguments("--model m --protocol --quantize dynamic-int8 --quantized-engine x86".split()))
        want = "int8" if loading.activation_levels() > 200 else "int7 in uint8"
        self.assertEqual(want, side.declaration()["activations"])

    def test_refused(self):
        with self.assertRaisesRegex(Problem, "want --dtype float32"):
            loading.quantize(tiny("qwen2").bfloat16(), "dynamic-int8")
        with self.assertRaisesRegex(Problem, "got 'abacus'"):
            loading.quantize(tiny("qwen2"), "dynamic-int8", "abacus")
        with self.assertRaisesRegex(Problem, "no torch.nn.Linear|want some"):
            m = tiny("qwen2")
            loading.quantize(m, "dynamic-int8", "qnnpack")
            loading.quantize(m, "dynamic-int8", "qnnpack")

    @unittest.skipUnless(importlib.util.find_spec("torchao"), "torchao is not installed")
    def test_torchao(self):
        m = tiny("qwen2")
        exact = Dumper(m).run(IDS, [], 1)
        loading.quantize(m, "torchao-int8")
        d = Dumper(m)
        got = d.run(IDS, [], 1, d.offered)
        self.assertEqual(exact.rows[0], got.rows[0])
        off = torch.tensor(got.rows[3]) - torch.tensor(exact.rows[3])
        self.assertTrue(1e-4 < float(off.norm() / torch.tensor(exact.rows[3]).norm()) < 0.2)


class Whole(unittest.TestCase):
    def test_a_folder(self):
        with tempfile.TemporaryDirectory() as d:
            model, prompts, out = (os.path.join(d, n) for n in ("m", "p.jsonl", "out"))
            tiny("llama").save_pretrained(model)
            with open(prompts, "w") as f:
                f.write('{"name":"a","text":"x","token_ids":[3,1,4],"prompt":"p","why":"w","stop":[]}\n')
            argv = ["--model", model, "--prompts", prompts, "--out", out, "--max-new", "2", "--probes", "residual"]
            with open(os.devnull, "w") as null:
                stdout, sys.stdout = sys.stdout, null
                try:
                    self.assertEqual(0, cli.main(argv))
                finally:
                    sys.stdout = stdout
            self.assertEqual(["a.json", "a.layers.bin", "a.logits.bin", "a.probes.safetensors", "engine.json"], sorted(os.listdir(out)))
            with open(os.path.join(out, "a.json")) as f:
                case = json.load(f)
            self.assertEqual(("x", [3, 1, 4], [], "p", "w", 2),
                             (*(case[k] for k in ("text", "token_ids", "stop", "prompt", "why")), len(case["output_ids"])))  # fmt: skip
            self.assertEqual(32 + 4 * 32 * 4, os.path.getsize(os.path.join(out, "a.layers.bin")))
            self.assertEqual(16 + 2 * 64 * 4, os.path.getsize(os.path.join(out, "a.logits.bin")))
            stderr = sys.stderr
            with open(os.devnull, "w") as sys.stderr:
                self.assertEqual(1, cli.main(argv))  # the folder is there
            sys.stderr = stderr

    def protocol(self, model, flags, asked):
        """What the handshake declares, and {probe: shape} of the answer to one prompt that asks for some of it."""
        adapter = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plumbline_transformers.py")
        with tempfile.TemporaryDirectory() as out:
            at = {k: os.path.join(out, "case." + k) for k in ("layers.bin", "logits.bin", "probes.safetensors")}
            out = dict(zip(("layers", "logits", "probes"), at.values(), strict=True), dir=out)
            ask = {"case": "a", "token_ids": [3, 1, 4], "text": "x", "decode_steps": 1, "stop": [], "probes": asked, "out": out}
            lines = "".join(json.dumps(r) + "\n" for r in ({"plumbline": 1}, ask))
            argv = [sys.executable, "-B", adapter, "--model", model, "--protocol", *flags]
            hello, answer = subprocess.run(argv, input=lines, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
            self.assertEqual({"case": "a", "ok": True}, json.loads(answer))
            if not os.path.exists(out["probes"]):
                return json.loads(hello)["probes"], {}
            with open(out["probes"], "rb") as f:
                header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        return json.loads(hello)["probes"], {k: v["shape"] for k, v in header.items()}

    def test_the_gate_gets_the_probes_that_it_asks_for(self):
        with tempfile.TemporaryDirectory() as d:
            tiny("llama").save_pretrained(d)
            declared, got = self.protocol(d, [], probe_names.standard(3))
            self.assertEqual(probe_names.standard(3), declared)
            widths = {"k_rope": 16, "v": 16}
            self.assertEqual({p: [3, widths.get(p.rpartition(".")[2], 32)] for p in declared}, got)
            self.assertEqual({}, self.protocol(d, [], [])[1])
            declared, got = self.protocol(d, ["--probes", "embed,blocks.1.q"], ["embed"])
            self.assertEqual((["embed", "blocks.1.q"], {"embed", "blocks.1.q"}), (declared, set(got)))
            tiny("phi3").save_pretrained(d)  # its v is fused with others
            _, got = self.protocol(d, [], probe_names.standard(3))
            self.assertEqual({p for p in probe_names.standard(3) if not p.endswith(".v")}, set(got))

    def test_a_checkpoint_without_a_weight_is_refused(self):
        from safetensors.torch import load_file, save_file

        with tempfile.TemporaryDirectory() as d:
            tiny("llama").save_pretrained(d)
            path = os.path.join(d, "model.safetensors")
            weights = load_file(path)
            weights.pop("model.layers.1.mlp.up_proj.weight")
            save_file(weights, path, metadata={"format": "pt"})
            with self.assertRaisesRegex(Problem, "missing_keys: got model.layers.1.mlp.up_proj.weight"):
                loading.model(d, "float32", "cpu")


if __name__ == "__main__":
    unittest.main()
