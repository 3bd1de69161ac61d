"""Writes the files of the test's table into the folder argv[1], and prints 0 or
the errno of each call."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
sys.dont_write_bytecode = True
import plumbline_dump as d


def tell(f, *args, **more):
    try:
        f(*args, **more)
        print(0)
    except OSError as e:
        print(e.errno)


def refused(kind, f, *args, **more):
    try:
        f(*args, **more)
        print(0)
    except kind:
        print(1)


to = lambda name: os.path.join(sys.argv[1], name)
scales = [(1073741825, -38), (2147483647, 4)]
codes = [[1, -2, -128], [127, 0, -1]]
tell(d.f32_layers, to("a.layers.bin"), "foobar", [[1.0, -2.5, 3], [0.1, 65504, -0.0]])
tell(d.int8_layers, to("int8.bin"), "foobar", scales, codes)
tell(d.f32_logits, to("f32.bin"), [[0.5, 7, -1]])
tell(d.i32_logits, to("a.logits.bin"), [[5, -7], [2147483647, -2147483648]])
tell(d.i32_logits, to("none.bin"), [])
tell(d.probes, to("a.probes.safetensors"), {"embed": [[1], [2]], "blocks.0.resid_post": [[-1, 0.25]]})
tell(d.case, to("a.json"), "foobar", [4, 5, 151645], output_ids=(6, 0), decoded='a "b" \\c\n\t\x01 ü 😀')
tell(d.engine, to("engine.json"), "my engine", layers="f32", logits="i32", kv_cache="int8")
# What is no dump leaves none.
refused(ValueError, d.f32_layers, to("bad.bin"), "foobar", [])
refused(ValueError, d.int8_layers, to("bad.bin"), "foobar", [(1, 0), (0, 0)], codes)
refused(ValueError, d.f32_logits, to("bad.bin"), [[]])
refused(FileNotFoundError, d.f32_logits, "no such folder/bad.bin", [[1]])
refused(ValueError, d.f32_layers, to("bad.bin"), "foobar", [[1, 2], [3]])
refused(ValueError, d.int8_layers, to("bad.bin"), "foobar", scales, [[1, 128, 0], [0, 0, 0]])
refused(ValueError, d.case, to("bad.bin"), "foobar", [])
bad = to("bad.bin")
for ids in ([-1], [2**31], [1.7], {1, 2}, b"ab", "12", ["1"], 7):
    refused(ValueError, d.case, bad, "foobar", ids)
    refused(ValueError, d.case, bad, "foobar", [1], output_ids=ids)
    refused(ValueError, d.case, bad, "foobar", [1], stop=ids)
refused(ValueError, d.case, bad, "foobar", [1], text="evil")
refused(ValueError, d.case, bad, None, [1])
refused(ValueError, d.case, bad, "foobar", [1], decoded=1)
refused(ValueError, d.case, bad, "\ud800", [1])
for tensors in ({}, {"__metadata__": [[1]]}, {1: [[1]]}, {"a": []}, {"a": [[]]}, {"a": [[1e300]]}):
    refused(ValueError, d.probes, bad, tensors)
for row in (b"abcd", bytearray(4), "abcd", {1, 2}, [1e300], [10**400], ["1"], [None], [1j]):
    refused(ValueError, d.f32_layers, bad, "foobar", [row])
    refused(ValueError, d.f32_logits, bad, [row])
    refused(ValueError, d.i32_logits, bad, [row])
for row in ([2**31], [-(2**31) - 1], [1.0]):
    refused(ValueError, d.i32_logits, bad, [row])
for code in (-129, 128, 1.0, "1"):
    refused(ValueError, d.int8_layers, bad, "foobar", [(1, 0)], [[code]])
for scale in ((0, 0), (-1, 0), (2**63, 0), (1.0, 0), (1, 0.5), (1, -1023), (1, 1017), (1, 2**70), (1,)):
    refused(ValueError, d.int8_layers, bad, "foobar", [scale], [[1]])
for name in ("", " ", None, 7):
    refused(ValueError, d.engine, bad, name)
for more in ({"layers": "f64"}, {"layers": "i32"}, {"logits": "int8-scaled"}, {"logits": ["f32"]}):
    refused(ValueError, d.engine, bad, "a", **more)
# The edge of what may be: got as far as the name that is taken.
taken = to("int8.bin")
nan, inf = float("nan"), float("inf")
for args in ((d.int8_layers, taken, "foobar", [(1, -1022), (1, 1016), (2**63 - 1, 0)], [[1], [2], [3]]),
             (d.f32_logits, taken, [[nan, inf, -inf, 3.4028235e38]]),
             (d.case, taken, "foobar", [0, 2**31 - 1])):
    refused(OSError, *args)
