"""The dump formats, against values worked out by hand."""

import struct
import unittest

import dumps
from failure import Failure
from refused import refused


class Dumps(unittest.TestCase):
    def test_published_fnv_values(self):
        # Published with the hash: the offset basis for "", and the results for "a" and "foobar".
        self.assertEqual(0xCBF29CE484222325, dumps.fnv1a64(""))
        self.assertEqual(0xAF63DC4C8601EC8C, dumps.fnv1a64("a"))
        self.assertEqual(0x85944171F73967E8, dumps.fnv1a64("foobar"))

    def test_layout_of_both_dumps(self):
        row = struct.pack("<2f", 1.0, -2.0)
        self.assertEqual(
            "0200000000000000" "0200000000000000" "8cec01864cdc63af" "0100000000000000" + "0000803f000000c0" * 2,
            dumps.layers([row, row], 2, "a").hex(),
        )
        self.assertEqual("0100000000000000" "0200000000000000" "0000803f000000c0", dumps.logits([row], 2).hex())
        self.assertEqual(bytes(16), dumps.logits([], 7))
        self.assertEqual([[1.0, -2.0]], [list(r) for r in dumps.read(dumps.logits([row], 2), "x.logits.bin")])

    def test_wrong_sizes_are_refused(self):
        refused(self, Failure, "row 0: got 8 bytes, want 12", dumps.logits, [bytes(8)], 3)
        whole = dumps.layers([bytes(8)], 2, "a")
        for data in (b"", whole[:31], whole[:-1], whole + b"\0"):
            refused(self, Failure, f"got {len(data)} bytes", dumps.read, data, "x.layers.bin")


if __name__ == "__main__":
    unittest.main()
