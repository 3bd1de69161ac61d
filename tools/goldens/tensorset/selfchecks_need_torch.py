"""Tests that a recorder of tensors refuses what it must. Run in the recorder's environment: make test-goldens-torch."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "qwen3_5"), str(HERE), str(HERE.parent)]

import arithmetic

os.environ.update(arithmetic.environment(os.environ))

import float64_qwen3_5
import native
import numpy as np
import one_pass
import places
import plan
import power
import prompt
import recording
import rounding
import targets
import teacher
import torch
from failure import Failure
from safetensors.torch import save

ENTRY = {"name": "p", "tokens": 5, "seed": 1, "new": 4, "positions": [0, 4, 5, 6], "why": "w"}
FIXTURE = recording.ROOT / "fixtures/qwen3_5-seeded"


def case(**change):
    return json.dumps({"token_ids": [1], "output_ids": [0, 2]} | change).encode()


class Rounding(unittest.TestCase):
    rows = np.array([[3.0, 1.0, 1.0], [1.0, 2.99, 3.0]])

    def test_tensors_within_and_beyond_the_bound(self):
        old = torch.randn(3, 8)
        for factor, ok in ((3.9, True), (4.1, False), (float("nan"), False)):
            new = old * (1 + factor * 1e-3)
            why = rounding.tensors(save({"x": old}), save({"x": new}), {"x": 1e-3})
            self.assertEqual(why is None, ok, factor)
        self.assertEqual(rounding.tensors(save({"x": old}), save({"y": old}), {}), "other tensors")
        self.assertEqual(rounding.tensors(save({"x": old}), save({"x": old[:2].contiguous()}), {}), "other tensors")

    def test_one_row_beyond_the_bound_is_enough(self):
        new = (old := torch.randn(3, 8)).clone()
        new[1] *= 1.01
        self.assertIsNotNone(rounding.tensors(save({"x": old}), save({"x": new}), {"x": 1e-3}))

    def test_choices_may_differ_at_a_tie_only(self):
        self.assertIsNone(rounding.case(case(), case(output_ids=[0, 1]), self.rows, 1e-3))
        self.assertIn("output 0", rounding.case(case(), case(output_ids=[1, 2]), self.rows, 1e-3))
        self.assertIn("output 1", rounding.case(case(), case(output_ids=[0, 0]), self.rows, 1e-3))
        self.assertEqual(rounding.case(case(), case(token_ids=[2]), self.rows, 1e-3), "another case")


class Comparison(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.recording = recording.Recording("set", "fixtures/model", "c", HERE, ())
        self.facts = {"precision": {"p": {"logits": 1e-3}}}
        old = torch.tensor([[3.0, 1.0, 1.0], [1.0, 2.0, 3.0]])
        self.contents = {
            "fixtures/model/config.json": b"{}",
            "golden/set/p.json": case(),
            "golden/set/p.safetensors": save({"logits": old}),
            "golden/set.manifest.json": b'{"precision": 1, "goldens": {"files": {"p.json": 1}}, "cases": ["p"]}',
            "golden/set.manifest.json.sha256": b"a",
        }
        for rel, data in self.contents.items():
            (self.root / rel).parent.mkdir(parents=True, exist_ok=True)
            (self.root / rel).write_bytes(data)
        self.near = save({"logits": old * 1.001})

    def differs(self, tolerant, **files):
        changed = self.contents | {k: v for k, v in files.items() if v is not None}
        with mock.patch.object(recording, "ROOT", self.root), contextlib.redirect_stdout(io.StringIO()):
            return recording.compare(self.recording, changed, self.facts, tolerant)

    def test_what_is_reproduced(self):
        self.assertEqual(self.differs(False), [])
        self.assertEqual(self.differs(True), [])

    def test_any_byte_counts_without_tolerance(self):
        for rel in self.contents:
            self.assertEqual(self.differs(False, **{rel: b"{}x"}), [f"changed {rel}"])

    def test_only_values_may_round(self):
        self.assertEqual(self.differs(True, **{"golden/set/p.safetensors": self.near}), [])
        self.assertEqual(len(self.differs(False, **{"golden/set/p.safetensors": self.near})), 1)
        self.assertEqual(self.differs(True, **{"fixtures/model/config.json": b"{ }"}), ["changed fixtures/model/config.json"])
        moved = b'{"precision": 2, "goldens": {"files": {"p.json": 2}}, "cases": ["p"]}'
        self.assertEqual(self.differs(True, **{"golden/set.manifest.json": moved}), [])
        other = moved.replace(b'["p"]', b'["q"]')
        self.assertEqual(self.differs(True, **{"golden/set.manifest.json": other}), ["changed golden/set.manifest.json"])

    def test_missing_and_orphaned_files(self):
        (self.root / "golden/set/p.json").unlink()
        self.assertEqual(self.differs(True), ["missing golden/set/p.json"])
        (self.root / "golden/set/p.json").write_bytes(self.contents["golden/set/p.json"])
        (self.root / "golden/set/old.json").write_bytes(b"{}")
        self.assertEqual(self.differs(True), ["orphan golden/set/old.json"])


class Passes(unittest.TestCase):
    def test_passes_that_differ_are_refused(self):
        def child(argv):
            folder = Path(argv[-1])
            (folder / "p.json").write_text(folder.name)

        with tempfile.TemporaryDirectory() as scratch, mock.patch.object(recording, "child", child):
            with self.assertRaisesRegex(Failure, "two passes differ"):
                recording.passes(recording.Recording("set", "m", "c", HERE, ()), Path(scratch))


class Hybrid(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        native.settle()
        torch.set_grad_enabled(False)

    def setUp(self):
        self.exact = float64_qwen3_5.Model(FIXTURE)
        ids, forced = prompt.token_ids(ENTRY, 640)
        self.ids = ids + forced[:-1]

    def test_a_delta_rule_that_disagrees_with_itself_is_no_yardstick(self):
        one_pass.yardstick(self.exact, self.ids)
        real = float64_qwen3_5.chunked

        def wrong(q, k, v, decay, beta):
            return real(q, k, v, decay * 0.999, beta)

        with mock.patch.object(float64_qwen3_5, "chunked", wrong), self.assertRaisesRegex(Failure, "between chunks and steps"):
            one_pass.yardstick(self.exact, self.ids)

    def test_a_checkpoint_without_power_is_refused(self):
        floor = {f"blocks.{n}.attn_out": 1e-6 for n in range(8)}
        weakest = power.demand(self.exact, self.ids, ENTRY, self.exact.forward(self.ids), floor)
        self.assertGreater(weakest[1], 40e-6)
        for weight, value, fault in (
            ("layers.2.linear_attn.in_proj_b.weight", 0.0, "beta of another head in layer 2"),  # all heads write alike
            ("layers.4.linear_attn.A_log", 9.0, "recurrent state stale in layer 4"),  # a state that forgets at once
            ("layers.0.linear_attn.A_log", -30.0, "decay missing in layer 0"),  # one that forgets nothing
        ):
            exact = float64_qwen3_5.Model(FIXTURE)
            exact.w[weight][:] = value
            with np.errstate(all="ignore"), self.assertRaisesRegex(Failure, fault):
                power.demand(exact, self.ids, ENTRY, exact.forward(self.ids), floor)

    def test_the_class_reproduces_the_float64_forward(self):
        model = one_pass.load(FIXTURE, "float32")
        _, _, floor, _ = one_pass.record(model, self.exact, ENTRY, "float32")
        self.assertLess(max(floor.values()), 1e-5)
        model.model.language_model.layers[4].linear_attn.dt_bias += 0.01
        _, _, floor, _ = one_pass.record(model, self.exact, ENTRY | {"positions": [6]}, "bfloat16")
        self.assertGreater(floor["blocks.4.attn_out"], 1e-4)
        self.assertLess(floor["blocks.3.resid_post"], 1e-5)

    def test_a_position_that_a_hook_missed_is_refused(self):
        model = one_pass.load(FIXTURE, "float32")
        taps = places.tap(model)
        prompt.decode(model, [1, 2, 3], [4, 5])
        taps.close()
        taps.at([0, 3], 4)
        with self.assertRaisesRegex(Failure, "got 4 positions, want 5"):
            taps.at([0, 3], 5)


class Teacher(unittest.TestCase):
    def setUp(self):
        self.rows = [np.arange(4, dtype="f4") + i for i in (1, 2)]
        self.plan = {"prediction_points": [{"point_ordinal": i, "prefix_token_ids_sha256": "ab" * 32} for i in range(2)]}
        self.target = teacher.target(self.plan, self.rows)

    def test_target_rows(self):
        self.assertIsNone(targets.rows_apart(self.target, self.target, [1e-3, 1e-3]))
        near = teacher.target(self.plan, [self.rows[0], self.rows[1] * np.float32(1.003)])
        self.assertIsNone(targets.rows_apart(self.target, near, [1e-3, 1e-3]))
        self.assertIn("row 1", targets.rows_apart(self.target, near, [1e-3, 1e-4]))
        self.assertEqual(targets.rows_apart(self.target, self.target[:-1], [1e-3, 1e-3]), "another length")
        for at, row in ((3, 0), (len(teacher.MAGIC) + 4, 0), (len(teacher.MAGIC) + 76 + 30, 1)):
            broken = bytearray(self.target)
            broken[at] ^= 1
            self.assertEqual(targets.rows_apart(self.target, bytes(broken), [1e-3, 1e-3]), f"row {row}: another frame")

    def test_rows_that_are_not_finite_are_refused(self):
        with self.assertRaisesRegex(Failure, "not finite"):
            teacher.target(self.plan, [self.rows[0], self.rows[1] * np.float32("nan")])

    def test_trajectories_part_at_a_tie_only(self):
        def evidence(tokens, **more):
            t = {"stable_id": "g", "prompt_token_ids_sha256": "", "token_ids": tokens}
            return {"evidence_sha256": "", "target_artifact": {"sha256": ""}, "greedy_trajectories": [t]} | more

        rows = [[3.0, 1.0, 1.0], [1.0, 2.99, 3.0], [0.0, 0.0, 1.0]]
        facts = {"greedy_rows": {"g": rows}, "precision": {"trajectories": {"g": 1e-3}}}
        self.assertIsNone(targets.evidence_apart(evidence([0, 1, 0]), evidence([0, 2, 2]), facts))
        self.assertIn("token 0", targets.evidence_apart(evidence([1, 1, 1]), evidence([0, 2, 2]), facts))
        self.assertEqual(targets.evidence_apart(evidence([0]), evidence([0], dwq=True), facts), "other evidence")

    def test_ids_are_bytes_and_marks(self):
        self.assertEqual(plan.tokens("<|im_start|>é\n<|im_end|>"), [600, 0xC3, 0xA9, 10, 601])


if __name__ == "__main__":
    unittest.main()
