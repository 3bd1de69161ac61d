"""What a recording would do to the goldens, and what it may do unasked: nothing."""

import json
import struct
import unittest

import changes
import dumps
from failure import Failure
from refused import refused


def rows(*values):
    return dumps.logits([struct.pack(f"<{len(v)}f", *v) for v in values], len(values[0]))


class Changes(unittest.TestCase):
    def test_kinds(self):
        p = changes.plan({"a.json": b"1", "b.json": b"2", "old.json": b"3"}, {"a.json": b"1", "b.json": b"3", "c.json": b"4"})
        self.assertEqual((["a.json"], ["c.json"], ["b.json"], ["old.json"]), (p.same, p.new, p.changed, p.orphans))
        self.assertEqual(4, len(changes.lines(p)))

    def test_size_of_changed_rows(self):
        # Row 0 (3, 4) becomes (3, 5): 1/5. Row 1 stays.
        said = changes.size("x.logits.bin", rows((3, 4), (1, 1)), rows((3, 5), (1, 1)))
        self.assertEqual("1 of 2 rows, at most 0.2 relative L2 (row 0); by row 0: 0.2", said)
        self.assertIn("nan", changes.size("x.logits.bin", rows((1, 1), (1, 1)), rows((9, 1), (float("nan"), 1))))
        self.assertIn("2 rows of 2 become 1 of 2", changes.size("x.logits.bin", rows((1, 1), (1, 1)), rows((1, 1))))
        self.assertIn("can't be read", changes.size("x.logits.bin", b"short", rows((1, 1))))

    def test_size_of_changed_tokens(self):
        old = json.dumps({"output_ids": [1, 2, 3], "text": "a"}).encode()
        new = json.dumps({"output_ids": [1, 9], "text": "b"}).encode()
        self.assertEqual("output_ids: 2 of 3 differ; text", changes.size("x.json", old, new))

    def test_nothing_happens_unasked(self):
        missing = changes.plan({}, {"a.json": b"", "engine.json": b""})
        refused(self, Failure, "missing (--create NAME", changes.demand, missing)
        refused(self, Failure, "a.json", changes.demand, missing, accept=True)
        refused(self, Failure, "a.json", changes.demand, missing, create=["b"])
        changes.demand(missing, create=["a"])
        changes.demand(missing, create_all=True)
        changed = changes.plan({"a.json": b"1"}, {"a.json": b"2"})
        refused(self, Failure, "changed (--accept", changes.demand, changed, create_all=True)
        changes.demand(changed, accept=True)
        refused(self, Failure, "isn't missing: a", changes.demand, changed, accept=True, create=["a"])

    def test_orphans_are_refused_whatever_was_asked(self):
        p = changes.plan({"gone.logits.bin": b"1"}, {"a.json": b""})
        refused(self, Failure, "gone.logits.bin", changes.demand, p, accept=True, create_all=True)


if __name__ == "__main__":
    unittest.main()
