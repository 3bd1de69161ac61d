"""The pinned reference, requirements and arithmetic are demanded, and what differs is named."""

import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import arithmetic
import pins
from failure import Untrusted
from layout import ROOT, Layout
from refused import refused


class Pins(unittest.TestCase):
    want = {"library": "transformers", "versions": {"torch": "2.0"}, "modules": {"transformers/a.py": "aa"}}

    def changed(self, **part):
        return json.loads(json.dumps(self.want)) | part

    def test_the_pinned_reference_is_accepted(self):
        pins.demand(self.changed(), self.want)

    def test_each_difference_is_refused_with_got_and_want(self):
        for got, text in (
            (self.changed(library="vllm"), "library: got vllm, want transformers"),
            (self.changed(versions={"torch": "2.1"}), "version of torch: got 2.1, want 2.0"),
            (self.changed(versions={}), "version of torch: got nothing, want 2.0"),
            (self.changed(versions={"torch": "2.0", "numpy": "1"}), "version of numpy: got 1, want nothing"),
            (self.changed(modules={"transformers/a.py": "ab"}), "SHA-256 of transformers/a.py: got ab, want aa"),
            (self.changed(modules={}), "SHA-256 of transformers/a.py: got nothing, want aa"),
        ):
            with self.subTest(text):
                refused(self, Untrusted, text, pins.demand, got, self.want)

    def test_a_module_that_is_not_pinned_is_refused(self):
        pins.unpinned({"transformers/a.py"}, self.want)
        refused(self, Untrusted, "transformers/b.py", pins.unpinned, {"transformers/a.py", "transformers/b.py"}, self.want)

    def test_broken_files_are_refused(self):
        with tempfile.TemporaryDirectory() as d:
            path = Path(d) / "pins.json"
            refused(self, Untrusted, "FileNotFoundError", pins.load, path)
            for text in ("", "{", "[]", "{}", json.dumps(self.changed(versions={})), json.dumps(self.changed(extra=1))):
                with self.subTest(text):
                    path.write_text(text)
                    refused(self, Untrusted, "pins.json", pins.load, path)

    def test_the_committed_pins_name_the_forward(self):
        got = pins.load(ROOT / Layout.pins)
        self.assertEqual("5.13.1", got["versions"]["transformers"])
        for module in ("models/qwen2/modeling_qwen2.py", "cache_utils.py", "masking_utils.py", "modeling_rope_utils.py"):
            self.assertRegex(got["modules"][f"transformers/{module}"], r"\A[0-9a-f]{64}\Z")

    def test_requirements_pin_the_same_versions_with_hashes(self):
        text = (ROOT / "tools/goldens/requirements.txt").read_text()
        for name, version in pins.load(ROOT / Layout.pins)["versions"].items():
            if name != "python":
                self.assertRegex(text, rf"(?m)^{name}=={version.split('+')[0]} \\$")
        for word in ("://", "--index", "--find-links", "--trusted"):
            self.assertNotIn(word, text)
        for block in text.split("\n\n"):
            for line in block.splitlines():
                self.assertRegex(line, r"^(#|[A-Za-z0-9_.-]+==[^ ]+ \\$| +--hash=sha256:[0-9a-f]{64}$)")


class Arithmetic(unittest.TestCase):
    def test_another_cpu_is_refused(self):
        want = {"cpu_capability": "AVX2", "threads": 1}
        arithmetic.demand(dict(want), want)
        refused(self, Untrusted, "got DEFAULT, want AVX2", arithmetic.demand, want | {"cpu_capability": "DEFAULT"}, want)
        refused(self, Untrusted, "threads", arithmetic.demand, {"cpu_capability": "AVX2"}, want)

    def test_a_process_with_other_variables_is_refused(self):
        with mock.patch.dict("os.environ", arithmetic.ENVIRONMENT | {"OMP_NUM_THREADS": "2"}):
            refused(self, Untrusted, "OMP_NUM_THREADS", arithmetic.settle)


if __name__ == "__main__":
    unittest.main()
