"""Writes dequantised.json, everything.gguf and everything.json in this folder.

    python3 -m venv venv && venv/bin/pip install gguf==0.19.0 numpy
    venv/bin/python engine/reference/gguf/testdata/record.py

Everything expected comes from the Python package gguf, whose dequantize defines
the values and whose writer makes the file. Random numbers come from a fixed seed.
"""

import base64
import json
import pathlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Q

HERE = pathlib.Path(__file__).resolve().parent
RNG = np.random.default_rng(20240607)

# Where the halves lie in the blocks of each type.
HALVES = {
    Q.Q4_0: [0], Q.Q4_1: [0, 2], Q.Q5_0: [0], Q.Q5_1: [0, 2], Q.Q8_0: [0],
    Q.Q2_K: [80, 82], Q.Q3_K: [108], Q.Q4_K: [0, 2], Q.Q5_K: [0, 2], Q.Q6_K: [208],
}  # fmt: skip


def halves(n):
    """Finite halves: of a weight's size, and of all sizes, subnormal and zero."""
    usual = RNG.normal(0, 0.02, n).astype(np.float16)
    bits = RNG.integers(0, 1 << 16, n).astype(np.uint16)
    bits[(bits >> 10) & 31 == 31] &= 0x83FF  # infinity and NaN become subnormal
    return np.where(RNG.integers(0, 2, n) == 0, usual, bits.view(np.float16))


def blocks(kind, n):
    """n random blocks of a type."""
    size = gguf.GGML_QUANT_SIZES[kind][1]
    raw = RNG.integers(0, 256, (n, size)).astype(np.uint8)
    for at in HALVES[kind]:
        raw[:, at : at + 2] = halves(n).view(np.uint8).reshape(n, 2)
    return raw


def b64(a):
    return base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()


def dequantised():
    out = {}
    for kind in HALVES:
        raw = blocks(kind, 16 if gguf.GGML_QUANT_SIZES[kind][0] == 32 else 5)
        out[kind.name] = {"raw": b64(raw), "float32": b64(gguf.quants.dequantize(raw, kind).astype(np.float32))}
    f = RNG.normal(0, 1, 64).astype(np.float32)
    out["F32"] = {"raw": b64(f), "float32": b64(f)}
    h = halves(64)
    out["F16"] = {"raw": b64(h), "float32": b64(gguf.quants.dequantize(h.view(np.uint8), Q.F16))}
    raw = gguf.quants.quantize(f.reshape(1, 64), Q.BF16)
    out["BF16"] = {"raw": b64(raw), "float32": b64(gguf.quants.dequantize(raw, Q.BF16))}
    return out


def everything():
    """A file with a key of each type and tensors of several."""
    path = HERE / "everything.gguf"
    w = gguf.GGUFWriter(path, "made-up")
    w.add_custom_alignment(64)
    w.add_uint8("a.uint8", 250)
    w.add_int8("a.int8", -3)
    w.add_uint16("a.uint16", 65000)
    w.add_int16("a.int16", -30000)
    w.add_uint32("a.uint32", 4000000000)
    w.add_int32("a.int32", -2000000000)
    w.add_float32("a.float32", 0.1)
    w.add_uint64("a.uint64", 1 << 63)
    w.add_int64("a.int64", -(1 << 62))
    w.add_float64("a.float64", 0.1)
    w.add_bool("a.bool", True)
    w.add_string("a.string", "Grüße\n")
    w.add_array("a.strings", ["", "x", "Grüße", "long " * 20])
    w.add_array("a.int32s", [1, -2, 3])
    w.add_array("a.float32s", [0.5, -0.25])
    w.add_array("a.bools", [True, False, True])
    kinds = [Q.Q6_K, Q.Q4_0, Q.Q8_0, Q.Q3_K]
    tensors = []
    for i, kind in enumerate(kinds):
        rows = i + 1
        raw = blocks(kind, rows * 2)
        raw = raw.reshape(rows, -1)
        w.add_tensor(f"t.{kind.name}", raw, raw_dtype=kind)
        tensors.append((f"t.{kind.name}", raw, kind))
    cube = RNG.normal(0, 1, (2, 3, 5)).astype(np.float32)
    w.add_tensor("t.cube", cube)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    # and read again, by the package's reader
    out = []
    for t in gguf.GGUFReader(path).tensors:
        values = gguf.quants.dequantize(t.data, t.tensor_type)
        out.append({"name": t.name, "type": t.tensor_type.name, "shape": [int(d) for d in t.shape[::-1]],
                    "offset": int(t.data_offset), "bytes": int(t.n_bytes), "float32": b64(values.astype(np.float32))})  # fmt: skip
    return out


def write(name, data):
    (HERE / name).write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write("dequantised.json", dequantised())
    write("everything.json", everything())
