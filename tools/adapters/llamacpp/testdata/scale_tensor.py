#!/usr/bin/env python3
"""Plants a fault in a GGUF: multiplies one tensor, by its blocks' scales.

  python3 scale_tensor.py IN.gguf OUT.gguf blk.15.ffn_down.weight 1.5

The scales are float16 and rounded again. Python 3.8, standard library only."""

import os
import struct
import sys

# By ggml's number of a type: bytes of a block of 32 weights, and how many
# float16 stand in front of the codes (a scale, and for the _1 types a minimum).
BLOCKS = {2: (18, 1), 3: (20, 2), 6: (22, 1), 7: (24, 2), 8: (34, 1)}
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9


class _Header:
    def __init__(self, f):
        self.f = f

    def number(self, code):
        return struct.unpack("<" + code, self.f.read(struct.calcsize("<" + code)))[0]

    def text(self):
        return self.f.read(self.number("Q")).decode("utf-8", "replace")

    def value(self, kind):
        """One metadata value; only numbers of four bytes and texts are told."""
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            kind, n = self.number("I"), self.number("Q")
            for _ in range(n):
                self.value(kind)
            return None
        return int.from_bytes(self.f.read(_SIZES[kind]), "little")


def find(f, name):
    """The type of a tensor, the file offset of its data, and its number of weights."""
    h = _Header(f)
    if f.read(4) != b"GGUF" or h.number("I") not in (2, 3):
        raise ValueError("no GGUF of version 2 or 3")
    tensors, pairs = h.number("Q"), h.number("Q")
    alignment = 32
    for _ in range(pairs):
        key = h.text()
        value = h.value(h.number("I"))
        if key == "general.alignment":
            alignment = value
    found = None
    for _ in range(tensors):
        its = h.text()
        n = 1
        for _ in range(h.number("I")):
            n *= h.number("Q")
        kind, offset = h.number("I"), h.number("Q")
        if its == name:
            found = kind, offset, n
    if found is None:
        raise ValueError("no tensor %s" % name)
    return found[0], -(-f.tell() // alignment) * alignment + found[1], found[2]


def scale(data, size, halves, factor):
    """Blocks with their leading float16 multiplied."""
    out = bytearray(data)
    for at in range(0, len(out), size):
        values = struct.unpack_from("<%de" % halves, out, at)
        struct.pack_into("<%de" % halves, out, at, *(factor * v for v in values))
    return bytes(out)


def change(source, target, name, of):
    """Copies a GGUF, with one tensor's data as of(data, bytes of a block, its leading float16) makes it."""
    with open(source, "rb") as f:
        kind, start, weights = find(f, name)
        if kind not in BLOCKS:
            raise ValueError("%s: type %d, want one of %s" % (name, kind, sorted(BLOCKS)))
        size, halves = BLOCKS[kind]
        length = weights // 32 * size
        with open(target, "xb") as out:
            f.seek(0)
            for n in iter(lambda: f.read(min(1 << 20, start - f.tell())), b""):
                out.write(n)
            out.write(of(f.read(length), size, halves))
            for n in iter(lambda: f.read(1 << 20), b""):
                out.write(n)
    if os.path.getsize(source) != os.path.getsize(target):
        raise ValueError("%s: cut short" % target)


def main(source, target, name, factor):
    change(source, target, name, lambda data, size, halves: scale(data, size, halves, float(factor)))


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
