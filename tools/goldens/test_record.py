"""Two passes that must agree, and the flags."""

import tempfile
import unittest
from pathlib import Path
from unittest import mock

import record
from failure import Failure, Untrusted
from layout import Layout
from refused import refused


class Passes(unittest.TestCase):
    def record(self, outputs, code=0):
        made = iter(outputs)

        def fake(argv, **_):
            (Path(argv[-1]) / "facts.json").write_text(next(made))
            return mock.Mock(returncode=code)

        with tempfile.TemporaryDirectory() as d, mock.patch.object(record.subprocess, "run", fake):
            return record.passes(Layout(), Path(d)).name

    def test_byte_identity_is_demanded(self):
        self.assertEqual("pass0", self.record(["x", "x"]))
        refused(self, Failure, "differ, so this is no golden: facts.json", self.record, ["x", "y"])

    def test_a_pass_that_gives_up_is_told_apart_from_one_that_breaks(self):
        refused(self, Failure, "exit code 3", self.record, ["x", "x"], 3)
        refused(self, Untrusted, "exit code 1", self.record, ["x", "x"], 1)  # a traceback
        refused(self, Untrusted, "exit code 2", self.record, ["x", "x"], 2)
        refused(self, Untrusted, "exit code -9", self.record, ["x", "x"], -9)


class CommandLine(unittest.TestCase):
    def test_check_with_a_writing_flag_is_a_usage_error(self):
        for flags in (["--accept"], ["--all-new"], ["--create", "a"]):
            with self.assertRaises(SystemExit) as caught, mock.patch("sys.stderr"):
                record.parse(["--check", *flags])
            self.assertEqual(2, caught.exception.code)


if __name__ == "__main__":
    unittest.main()
