"""What of the adapter needs no llama.cpp."""

import array
import contextlib
import io
import os
import struct
import sys
import tempfile
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "testdata")]

import describe
import places
import plumbline_llamacpp as adapter
import prompts
import scale_tensor


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


class Prompts(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "p.jsonl")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            return prompts.read(path, "S")

    def test_lines(self):
        a, b, c = self.read('{"name":"a","prompt":"x"}\n\n{"name":"b","prompt":"x","system":null,"stop":[2],"max_new":0}\n{"name":"c","text":"","token_ids":[1,0]}')
        self.assertEqual(("a", "x", "S", None, None, None), (a.name, a.prompt, a.system, a.text, a.token_ids, a.max_new))
        self.assertEqual((None, [2], 0), (b.system, b.stop, b.max_new))
        self.assertEqual(("", [1, 0]), (c.text, c.token_ids))

    def test_refused(self):
        for text, why in (
            ("", "no prompts"), ("[]", ":1: got no JSON object"), ('{"prompt":"x"}', ":1: name: got null"), ('{"name":"a"}', "neither"),
            ('{"name":"../a","prompt":"x"}', "base name"), ('{"name":"engine","prompt":"x"}', "base name"),
            ('{"name":"a","text":"x","token_ids":[1.5]}', "token_ids"), ('{"name":"a","text":"x","token_ids":[]}', "token_ids: got none"),
            ('{"name":"a","text":"x"}\n{"name":"a","text":"y"}', ":2: name: got 'a', the name of line 1"), ('{"name":"a","prompt":1}', "prompt: got 1"),
        ):  # fmt: skip
            with self.assertRaisesRegex(ValueError, why, msg=text):
                self.read(text)


class Options(unittest.TestCase):
    def test_ways(self):
        o = adapter.options(["--model", "m", "--prompts", "p", "--out", "o", "--probes", "--rope-freq-base", "1e4"])
        self.assertEqual((["embed", "k_rope", "v", "resid_mid", "resid_post"], {"rope_freq_base": 10000.0}), (o.parts, o.rope))
        for argv in ([], ["--protocol", "--prompts", "p", "--out", "o"], ["--prompts", "p"], ["--text-file", "t"], ["--protocol", "--probes", "nope"]):
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
