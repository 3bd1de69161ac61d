"""The manifest, and the hashes in it."""

import json
import tempfile
import unittest
from pathlib import Path

import hashing
import manifest
import pins
import sources
from failure import Untrusted
from layout import ROOT, Layout
from refused import refused


class Manifest(unittest.TestCase):
    def test_differences_name_the_path(self):
        old = {"a": {"b": 1, "gone": 2}, "list": [1]}
        new = {"a": {"b": 2, "new": 3}, "list": [1]}
        self.assertEqual(["a.b: 1 becomes 2", "a.gone: gone", "a.new: new"], manifest.differences(old, new))
        self.assertEqual([], manifest.differences(old, old))

    def test_other_keys_are_refused(self):
        whole = dict.fromkeys(manifest.KEYS, 0) | {"schema": manifest.SCHEMA}
        self.assertTrue(manifest.encode(whole).endswith(b"}\n"))
        refused(self, Untrusted, "keys", manifest.encode, whole | {"extra": 1})
        with self.assertRaises(ValueError):
            manifest.encode(whole | {"precision": float("nan")})
        with tempfile.TemporaryDirectory() as d:
            path = Path(d) / "m.json"
            self.assertIsNone(manifest.load(path))
            for text in ("{", "[]", json.dumps(whole | {"schema": "v0"}), json.dumps({"schema": manifest.SCHEMA})):
                path.write_text(text)
                refused(self, Untrusted, "m.json", manifest.load, path)

    def test_the_committed_manifest_is_true_of_the_tree(self):
        layout = Layout()
        m = manifest.load(layout.at(layout.manifest))
        self.assertEqual(m["goldens"]["files"], hashing.folder(layout.at(layout.goldens)))
        self.assertEqual(m["checkpoint"]["files"], hashing.folder(layout.at(layout.checkpoint), ("prompts.json",)))
        for part, path in (("source", layout.prompts_source), ("written", layout.prompts_written)):
            self.assertEqual(m["prompts"][part], {"path": path, **hashing.entry(layout.at(path))})
        self.assertEqual(m["recorder"]["sources"], sources.digests(layout))
        self.assertEqual(m["reference"], pins.load(layout.at(layout.pins)))
        self.assertEqual(layout.at(layout.manifest).read_bytes(), manifest.encode(m))
        self.assertNotIn(str(ROOT), layout.at(layout.manifest).read_text())


class Hashing(unittest.TestCase):
    def test_a_folder_of_plain_files(self):
        with tempfile.TemporaryDirectory() as d:
            d = Path(d)
            (d / "abc").write_bytes(b"abc")
            (d / "skip").write_bytes(b"")
            # FIPS 180-2, appendix B.1.
            want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
            self.assertEqual({"abc": {"bytes": 3, "sha256": want}}, hashing.folder(d, leave_out=("skip",)))
            (d / "link").symlink_to(d / "abc")
            refused(self, Untrusted, "link", hashing.folder, d)
            refused(self, Untrusted, "no such folder", hashing.folder, d / "none")


if __name__ == "__main__":
    unittest.main()
