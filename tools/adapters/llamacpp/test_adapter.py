"""What of the adapter needs no llama.cpp."""

import array
import contextlib
import io
import json
import os
import struct
import sys
import tempfile
import types
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "testdata")]

import describe
import places
import plumbline_llamacpp as adapter
import scale_tensor
import swap_heads
from plumbline_adapter import packages
from unsupported import Unsupported


class Places(unittest.TestCase):
    # The nodes of one layer in a llama's graph, as llama.cpp names them, in its order.
    GRAPH = [
        ("embd", "GET_ROWS"), ("norm-0", "RMS_NORM"), ("attn_norm-0", "MUL"), ("Qcur-0", "MUL_MAT"), ("Qcur-0", "RESHAPE"),
        ("Qcur-0", "ROPE"), ("Vcur-0", "MUL_MAT"), ("Vcur-0", "RESHAPE"), ("Kcur-0", "MUL_MAT"), ("Kcur-0", "RESHAPE"),
        ("Kcur-0", "ROPE"), ("Kcur-0 (view)", "VIEW"), ("cache_k_l0 (view)", "SET_ROWS"), ("Vcur-0 (reshaped)", "RESHAPE"),
        ("kq-0", "MUL_MAT"), ("kqv_out-0", "CONT"), ("attn_out-0", "MUL_MAT"), ("node_17", "GET_ROWS"), ("ffn_inp-0", "ADD"),
        ("ffn_norm-0", "MUL"), ("ffn_gate-0", "MUL_MAT"), ("ffn_out-0", "MUL_MAT"), ("l_out-0", "ADD"), ("norm", "RMS_NORM"),
        ("result_norm", "MUL"), ("result_output", "MUL_MAT"),
    ]  # fmt: skip

    def test_each_place_once(self):
        got = [p for p in (places.place(*node) for node in self.GRAPH) if p]
        in_block = ["attn_norm", "q", "q_rope", "v", "k", "k_rope", "attn_out", "resid_mid", "mlp_out", "resid_post"]
        self.assertEqual(["embed"] + ["blocks.0." + p for p in in_block] + ["final_norm", "logits"], got)

    def test_not_what_is_named_alike(self):
        for node in (("inp_embd", "NONE"), ("Kcur_normed-3", "RMS_NORM"), ("l_out", "ADD"), ("l_out-3x", "ADD"), ("ffn_out-3", "RESHAPE")):
            self.assertIsNone(places.place(*node), node)
        self.assertEqual("blocks.12.k", places.place("Kcur-12", "ADD"))  # with its bias

    def test_probes_in_order(self):
        self.assertEqual(["embed", "blocks.0.v", "blocks.0.resid_post", "blocks.1.v", "blocks.1.resid_post", "logits"],
                         places.probes(["logits", "resid_post", "v", "embed"], 2))  # fmt: skip
        with self.assertRaisesRegex(ValueError, "got resid_pst"):
            places.probes(["resid_pst"], 2)

    def test_half_split_by_hand(self):
        # Two heads of 6: the file pairs channel j with j+3 as neighbours.
        gguf = [0, 3, 1, 4, 2, 5, 10, 13, 11, 14, 12, 15]
        self.assertEqual([0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15], places.half_split(gguf, 6))
        self.assertEqual([7.0, 8.0], places.half_split(array.array("f", [7, 8]), 2))
        for row, width in (([1, 2, 3], 2), ([1, 2, 3], 3), ([1], 0)):
            with self.assertRaises(ValueError):
                places.half_split(row, width)


class Describe(unittest.TestCase):
    def test_types(self):
        # Numbers: LLAMA_FTYPE_* in llama.h.
        for number, weights, activations in (
            (0, "F32", "f32"), (1, "F16", "f16"), (2, "Q4_0", "int8 blocks"), (3, "Q4_1", "int8 blocks"),
            (7, "Q8_0", "int8 blocks"), (15, "Q4_K_M", "q8_K"), (18, "Q6_K", "q8_K"), (30, "file type 30", "unknown"),
            (1024, "unknown", "unknown"),
        ):  # fmt: skip
            self.assertEqual((weights, activations), (describe.weights(number), describe.activations(weights)), number)

    def test_cache(self):
        for k, v, want in (("f16", "f16", "f16"), ("q8_0", "f16", "q8_0 K"), ("f16", "q8_0", "q8_0 V"), ("q8_0", "q8_0", "q8_0"), ("f32", "q4_0", "f32 K, q4_0 V")):
            self.assertEqual(want, describe.kv_cache(k, v))

    def test_engine(self):
        o = types.SimpleNamespace(kv_type_k="q8_0", kv_type_v="f16", flash_attn=True, threads=3, rope={"rope_freq_base": 10000.0})
        want = {"version": "llama-cpp-python 1.2", "layers": "f32", "logits": "f32", "weights": "Q4_1", "activations": "int8 blocks",
                "kv_cache": "q8_0 K", "flash_attention": True, "threads": 3, "model": "a.gguf", "rope_freq_base": 10000.0}  # fmt: skip
        self.assertEqual(want, describe.engine("1.2", "a.gguf", 3, o))
        self.assertEqual({**want, "probes": "f32, every prompt position: embed,v"}, describe.engine("1.2", "a.gguf", 3, o, ["embed", "v"]))


class Model:
    """A model of one layer and two channels, as far as the program looks at it."""

    layers, file_type, ctx = 1, 3, 4
    broken = None

    def __init__(self, path, **options):
        pass

    def template(self, system, prompt):
        return "%s/%s" % (system, prompt)

    def encode(self, text):
        return list(text.encode())

    def stops(self):
        return [2]

    def decoded(self, ids):
        return "x"

    def check(self, ids, max_new, probes=()):
        if len(ids) + max_new > self.ctx:
            raise Unsupported("%d tokens: more than --ctx %d" % (len(ids), self.ctx))

    def run(self, ids, max_new, stop, probes):
        if self.broken:
            raise self.broken
        self.check(ids, max_new)
        return [[1, 2]] * 2, {p: [[1, 2]] for p in probes}, [7] * max_new, [[0, 1]] * max_new


class Program(unittest.TestCase):
    def setUp(self):
        d = tempfile.TemporaryDirectory()
        self.addCleanup(d.cleanup)
        self.at, self.out = d.name, os.path.join(d.name, "dumps")
        self.model = type("M", (Model,), {})
        fake = types.SimpleNamespace(Model=self.model, llama_cpp=types.SimpleNamespace(__version__="0"))
        self.installed = ["llama_cpp", "jinja2"]
        for patch in (
            unittest.mock.patch.dict(sys.modules, decode=fake),
            unittest.mock.patch.object(packages, "there", lambda name: name in self.installed),
        ):
            patch.start()
            self.addCleanup(patch.stop)

    def run_it(self, *argv):
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            return adapter.main(["--model", "m.gguf", *argv]), err.getvalue()

    def dump(self, lines, *more):
        path = os.path.join(self.at, "p.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            f.write(lines)
        return self.run_it("--prompts", path, "--out", self.out, "--max-new", "1", *more)

    def files(self):
        return sorted(os.listdir(self.out)) if os.path.isdir(self.out) else None

    def case(self, name):
        with open(os.path.join(self.out, name), encoding="utf-8") as f:
            return json.load(f)

    def test_a_folder(self):
        lines = '{"name":"a","prompt":"x","system":null,"text":"","token_ids":[1],"probes":7}\n{"name":"b","text":"hi","max_new":0}'
        self.assertEqual(0, self.dump(lines, "--probes", "embed")[0])
        a, b = ["a.json", "a.layers.bin", "a.logits.bin", "a.probes.safetensors"], ["b.json", "b.layers.bin", "b.probes.safetensors"]
        self.assertEqual([*a, *b, "engine.json"], self.files())
        self.assertEqual(["dumps", "p.jsonl"], sorted(os.listdir(self.at)))
        self.assertEqual(
            {"text": "", "token_ids": [1], "prompt": "x", "system": None, "probes": 7, "output_ids": [7], "decoded": "x", "stop": [2]},
            self.case("a.json"),
        )
        self.assertEqual({"text": "hi", "token_ids": [104, 105]}, self.case("b.json"))

    def test_nothing_is_left_of_a_list_with_a_prompt_too_long(self):
        code, said = self.dump('{"name":"a","text":"hi"}\n\n{"name":"b","text":"hello"}')
        self.assertEqual((1, None), (code, self.files()))
        self.assertIn("p.jsonl:3: 5 tokens: more than --ctx 4", said)
        self.model.broken = RuntimeError("llama_decode: code 1")
        self.assertEqual((1, None), (self.dump('{"name":"a","text":"hi"}')[0], self.files()))
        self.assertEqual(["p.jsonl"], os.listdir(self.at))

    def test_a_folder_that_is_there(self):
        self.assertEqual(0, self.dump('{"name":"a","text":"hi","max_new":0}')[0])
        code, said = self.dump('{"name":"b","text":"hi","max_new":0}')
        self.assertEqual((1, ["a.json", "a.layers.bin", "engine.json"]), (code, self.files()))
        self.assertIn("--overwrite replaces it", said)
        self.assertEqual(0, self.dump('{"name":"b","text":"hi","max_new":0}', "--overwrite")[0])
        self.assertEqual(["b.json", "b.layers.bin", "engine.json"], self.files())

    def test_probes_of_some_layers(self):
        self.model.layers = 3
        for flags, want in ((["--probes", "v"], [0, 1, 2]), (["--probes", "v", "--probe-layers", "2"], [0, 1])):
            self.assertEqual(0, self.dump('{"name":"a","text":"hi"}', "--overwrite", *flags)[0])
            with open(os.path.join(self.out, "a.probes.safetensors"), "rb") as f:
                self.assertEqual(["blocks.%d.v" % n for n in want], list(json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))))
        self.assertEqual("f32, every prompt position: v; layers 0 to 1", self.case("engine.json")["probes"])

    def one(self):
        path, into = os.path.join(self.at, "t"), tempfile.mkdtemp(dir=self.at)
        with open(path, "w", encoding="utf-8") as f:
            f.write("hi")
        return self.run_it("--text-file", path, "--dir", into, "--max-new", "1")

    def test_exit_codes(self):
        self.assertEqual((0, ""), self.one())
        self.installed.remove("llama_cpp")
        need = "got no package llama_cpp, want it installed: python -m pip install --require-hashes -r '%s'"
        self.assertEqual((1, "plumbline_llamacpp: " + need % os.path.join(HERE, "requirements.txt") + "\n"), self.one())
        self.installed.append("llama_cpp")
        for broken, code, said in (
            (RuntimeError("llama_decode: code 1"), 1, "plumbline_llamacpp: llama_decode: code 1\n"),
            (Unsupported("no k_rope"), 77, "plumbline_llamacpp: no k_rope\n"),
            (KeyError("k"), 1, "plumbline_llamacpp: KeyError('k')\n"),
        ):
            self.model.broken = broken
            self.assertEqual((code, said), self.one())


class SwapHeads(unittest.TestCase):
    def test_by_hand(self):
        self.assertEqual(b"ccbbaadd", swap_heads.swap(b"aabbccdd", 4, 0, 2))
        for heads, a, b in ((3, 0, 1), (4, 1, 1), (4, 0, 4)):
            with self.assertRaises(ValueError):
                swap_heads.swap(b"aabbccdd", heads, a, b)


class Options(unittest.TestCase):
    def test_ways(self):
        o = adapter.options(["--model", "m", "--prompts", "p", "--out", "o", "--probes", "--rope-freq-base", "1e4"])
        self.assertEqual((["embed", "k_rope", "v", "resid_mid", "resid_post"], {"rope_freq_base": 10000.0}), (o.parts, o.rope))
        for argv in ([], ["--protocol", "--prompts", "p", "--out", "o"], ["--prompts", "p"], ["--text-file", "t"], ["--protocol", "--probes", "nope"],
                     ["--protocol", "--probe-layers", "1"], ["--protocol", "--probes", "--probe-layers", "0"]):  # fmt: skip
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as e:
                adapter.options(["--model", "m", *argv])
            self.assertEqual(2, e.exception.code, argv)

    def test_smoke(self):
        with tempfile.TemporaryDirectory() as d:
            for name, text, add in (("r", "plumbline smoke: right", 0), ("w", "plumbline smoke: wrong", 1)):
                layers, logits = os.path.join(d, name + ".layers"), os.path.join(d, name + ".logits")
                adapter.smoke(layers, logits, text, [1, 2])
                with open(layers, "rb") as f:
                    self.assertEqual((1.0 + add, 2.0 + add, -1.0 + add, -2.0 + add), struct.unpack("<4f", f.read()[32:]))
                with open(logits, "rb") as f:
                    self.assertEqual((1, 2, 1.0 + add, 2.0 + add), struct.unpack("<QQ2f", f.read()))


class ScaleTensor(unittest.TestCase):
    def test_only_the_scales_of_one_tensor(self):
        def text(s):
            return struct.pack("<Q", len(s)) + s.encode()

        def tensor(name, offset):
            return text(name) + struct.pack("<IQQIQ", 2, 32, 1, 3, offset)  # 32 by 1, Q4_1

        head = b"GGUF" + struct.pack("<IQQ", 3, 2, 2)
        head += text("a.list") + struct.pack("<IIQ", 9, 8, 2) + text("x") + text("yz")
        head += text("general.alignment") + struct.pack("<II", 4, 64)
        head += tensor("t.weight", 0) + tensor("u.weight", 64)
        head += bytes(-len(head) % 64)
        block = struct.pack("<ee", 2.0, -4.0) + bytes(range(16))
        data = head + block + bytes(44) + block
        with tempfile.TemporaryDirectory() as d:
            source, target = os.path.join(d, "a.gguf"), os.path.join(d, "b.gguf")
            with open(source, "wb") as f:
                f.write(data)
            scale_tensor.main(source, target, "u.weight", "1.5")
            with open(target, "rb") as f:
                self.assertEqual(data[: len(head) + 64] + struct.pack("<ee", 3.0, -6.0) + bytes(range(16)), f.read())
            with self.assertRaisesRegex(ValueError, "no tensor v"):
                scale_tensor.main(source, target + "2", "v", "1")


if __name__ == "__main__":
    unittest.main()
