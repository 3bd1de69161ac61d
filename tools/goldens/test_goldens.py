"""Unit tests of the recorder's logic: no torch, no numpy, no transformers.

    python3 -m unittest discover tools/goldens
"""

import json
import struct
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import arithmetic
import changes
import dumps
import hashing
import manifest
import pins
import prompts
import publish
import record
from failure import Failure, Untrusted
from layout import ROOT, Layout


def refused(test, kind, text, call, *args, **kw):
    """call must raise exactly kind, with text in its message."""
    with test.assertRaises(Failure) as caught:
        call(*args, **kw)
    test.assertIs(type(caught.exception), kind)
    test.assertIn(text, str(caught.exception))


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
            ("last_token_norm_rank_below:3", "a", "b"),
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
