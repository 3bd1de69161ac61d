"""All files are put in place, or none."""

import tempfile
import unittest
from pathlib import Path
from unittest import mock

import publish
from failure import Untrusted
from refused import refused


class Publish(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.root = Path(self.dir.name)
        self.before = {"golden/s/a.bin": b"old a", "golden/s/b.bin": b"old b"}
        for rel, data in self.before.items():
            (self.root / rel).parent.mkdir(parents=True, exist_ok=True)
            (self.root / rel).write_bytes(data)
        self.after = {"golden/s/a.bin": b"new a", "golden/s/b.bin": b"old b", "golden/s/c.bin": b"c", "x/p.json": b"p"}

    def there(self):
        return {p.relative_to(self.root).as_posix(): p.read_bytes() for p in self.root.rglob("*") if p.is_file()}

    def test_writes_only_what_differs_and_says_so(self):
        self.assertEqual(["golden/s/a.bin", "golden/s/c.bin", "x/p.json"], publish.files(self.root, self.after))
        self.assertEqual(self.after, self.there())
        self.assertFalse((self.root / publish.STAGE).exists())

    def test_an_error_at_any_rename_leaves_everything_as_it_was(self):
        real = publish.os.replace
        for at in range(3):
            calls = []

            def broken(a, b):
                calls.append(b)
                if len(calls) == at + 1:
                    raise OSError(28, "No space left on device")
                real(a, b)

            with self.subTest(at), mock.patch.object(publish.os, "replace", broken):
                refused(self, Untrusted, "No space left", publish.files, self.root, self.after)
                self.assertEqual(self.before, self.there())

    def test_no_space_while_staging_leaves_everything_as_it_was(self):
        with mock.patch.object(publish.os, "fsync", side_effect=OSError(28, "No space left on device")):
            refused(self, Untrusted, "No space left", publish.files, self.root, self.after)
        self.assertEqual(self.before, self.there())

    def test_a_second_recorder_is_refused(self):
        (self.root / publish.STAGE).mkdir()
        refused(self, Untrusted, "another recorder", publish.files, self.root, self.after)
        self.assertTrue((self.root / publish.STAGE).exists())


if __name__ == "__main__":
    unittest.main()
