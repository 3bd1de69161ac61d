"""Prompts: broken entries, and claims that can fail."""

import json
import tempfile
import unittest
from pathlib import Path

import prompts
from failure import Failure, Untrusted
from layout import ROOT, Layout
from refused import refused


class Prompts(unittest.TestCase):
    def load(self, value):
        with tempfile.TemporaryDirectory() as d:
            path = Path(d) / "prompts.json"
            path.write_text(json.dumps(value))
            return prompts.load(path)

    def test_broken_entries_are_refused(self):
        good = {"name": "a", "why": "w", "raw": "x"}
        self.assertEqual([good], self.load([good]))
        for value in (
            [], {}, ["a"], [good, good], [good | {"name": "A"}], [good | {"name": "../a"}], [good | {"name": "engine"}],
            [good | {"why": ""}], [good | {"prompt": "y"}], [{"name": "a", "why": "w"}], [good | {"raw": ""}],
            [good | {"system": "s"}], [good | {"extra": 1}], [good | {"claims": ["fast"]}],
        ):  # fmt: skip
            with self.subTest(value):
                refused(self, Untrusted, "prompts.json", self.load, value)

    def test_each_claim_can_fail(self):
        ids = {"a": [5, 1, 2], "b": [5, 1, 7], "same": [5, 1, 2], "one": [3], "mirror": [3, 4, 3], "rep": [2] * 8, "sp": [9, 1]}
        facts = prompts.Facts(ids, [9], {i: i for i in range(10)})
        for claim, true, false in (
            ("one_token", "one", "a"),
            ("first_is_last", "mirror", "one"),
            ("tokens:3-3", "a", "one"),
            ("special_then_text", "sp", "a"),
            ("shares:a/2", "b", "same"),
            ("shares:a/3", None, "b"),
            ("norm_ranks_below:6", "a", "b"),
            ("repeats_one_token", "rep", "a"),
            ("ends_special", None, "sp"),
        ):
            with self.subTest(claim):
                if true:
                    prompts.hold([{"name": true, "claims": [claim]}], facts)
                refused(self, Failure, claim, prompts.hold, [{"name": false, "claims": [claim]}], facts)

    def test_the_committed_prompts_say_why_and_cover_what_they_must(self):
        entries = prompts.load(ROOT / Layout.prompts_source)
        self.assertGreaterEqual(len(entries), 12)
        claimed = {c.split(":")[0] for e in entries for c in e.get("claims", [])}
        self.assertEqual(set(prompts.CLAIMS), claimed)


if __name__ == "__main__":
    unittest.main()
