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


def refused(kind, f, *args):
    try:
        f(*args)
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
refused(ValueError, d.f32_layers, "bad.bin", "foobar", [])
refused(ValueError, d.int8_layers, "bad.bin", "foobar", [(1, 0), (0, 0)], codes)
refused(ValueError, d.f32_logits, "bad.bin", [[]])
refused(FileNotFoundError, d.f32_logits, "no such folder/bad.bin", [[1]])
refused(ValueError, d.f32_layers, "bad.bin", "foobar", [[1, 2], [3]])
refused(OverflowError, d.int8_layers, "bad.bin", "foobar", scales, [[1, 128, 0], [0, 0, 0]])
refused(ValueError, d.case, "bad.bin", "foobar", [])
