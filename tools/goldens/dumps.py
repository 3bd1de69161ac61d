"""The two float dump formats, and NAME.json: bytes in, bytes out. No torch, no numpy.

Layer dump: u64 rows, width, FNV-1a 64 of the text, capture mode 1, then float32 rows. Logit dump: u64 rows, vocabulary,
then float32 rows. All little-endian.
"""

import array
import json
import struct
import sys

from failure import Failure

CAPTURE_MODE = 1


def fnv1a64(text):
    h = 0xCBF29CE484222325
    for byte in text.encode("utf-8"):
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def _floats(rows, width):
    for i, row in enumerate(rows):
        if len(row) != width * 4:
            raise Failure(f"dump: row {i}: got {len(row)} bytes, want {width * 4}")
    return b"".join(rows)


def layers(rows, width, text):
    """rows are the bytes of little-endian float32 rows."""
    return struct.pack("<4Q", len(rows), width, fnv1a64(text), CAPTURE_MODE) + _floats(rows, width)


def logits(rows, vocab):
    if not rows:
        vocab = 0
    return struct.pack("<2Q", len(rows), vocab) + _floats(rows, vocab)


def read(data, name):
    """The rows of a dump, as arrays of float32; which of the two it is follows from the name."""
    words = 4 if name.endswith(".layers.bin") else 2
    if len(data) < words * 8:
        raise Failure(f"{name}: got {len(data)} bytes, want a header of {words * 8}")
    rows, width = struct.unpack_from("<2Q", data)
    if len(data) != words * 8 + rows * width * 4:
        raise Failure(f"{name}: got {len(data)} bytes, want {words * 8} + {rows}*{width}*4")
    values = array.array("f", data[words * 8 :])
    if sys.byteorder == "big":
        values.byteswap()
    return [values[i * width : (i + 1) * width] for i in range(rows)]


def case(record):
    """NAME.json: one key a line, lists of ids on one line, so that a diff shows what changed."""
    lines = [f" {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in record.items()]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode("utf-8")
