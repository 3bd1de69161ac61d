"""Tests that the recorder of DeepSeek-V2 refuses what it must. Run in the recorder's environment: make test-goldens-torch."""

import os
import sys
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tensorset"), str(HERE.parent)]

import arithmetic

os.environ.update(arithmetic.environment(os.environ))

import float64_deepseek2
import gate_pass
import native
import numpy as np
import one_pass
import power
import recording
import routes
import torch
from failure import Failure, Untrusted

FIXTURE = recording.ROOT / "fixtures/deepseek2-grouped"
LAYERS = 5
ENTRY = {"name": "p", "tokens": 5, "seed": 1, "new": 4, "positions": [0, 4, 5, 6], "why": "w"}
PAIR = [ENTRY | {"name": n, "tokens": t, "new": 1, "positions": [0, 1]} for n, t in (("long", 6), ("short", 4))]


class Choices(unittest.TestCase):
    logits = np.array([[3.0, 1.0, 2.0], [1.0, 2.0, 2.0]])

    def test_a_choice_that_the_logits_do_not_make(self):
        self.assertLessEqual(routes.excess(self.logits, [[0, 2], [1, 2]]).max(), 0)
        self.assertEqual(list(routes.excess(self.logits, [[0, 1], [0, 1]])), [1, 1])

    def test_only_forced_routes_may_be_off_and_by_rounding_only(self):
        exact = mock.Mock(cfg={"topk_method": "greedy", "num_hidden_layers": 1})
        for ids, floor, forced, ok in (
            ([[0, 2], [1, 2]], 0, False, True),
            ([[0, 1], [1, 2]], 0.05, False, False),
            ([[0, 1], [1, 2]], 0.05, True, True),  # 2 * 4 * 0.05 of the row's norm is more than 1
            ([[0, 1], [1, 2]], 0.01, True, False),
        ):
            tensors = {"blocks.0.route_ids": np.array(ids), "blocks.0.router_logits": self.logits}
            call = (exact, tensors, {"blocks.0.router_logits": floor}, forced)
            if ok:
                routes.demand_chosen(*call)
            else:
                with self.assertRaisesRegex(Failure, "not chosen is 1.00e"):
                    routes.demand_chosen(*call)


class Model(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        native.settle()
        torch.set_grad_enabled(False)
        cls.model = one_pass.load(FIXTURE, "float32")

    def setUp(self):
        self.exact = float64_deepseek2.Model(FIXTURE)

    def run_one(self, model=None, recorded=None):
        [together] = one_pass.batches([ENTRY])
        [(ids, forced, _, seen)] = one_pass.run_batch(model or self.model, together, recorded)
        return ids + forced[:-1], seen

    def test_the_class_reproduces_the_float64_forward(self):
        ids, seen = self.run_one()
        floor, _ = one_pass.judge(self.exact, ENTRY, ids, seen, "float32", False)
        self.assertLess(max(floor.values()), 1e-5)
        self.exact.score_factor = 1.0  # transformers' own scale
        floor = self.precision(ids, seen)
        self.assertGreater(floor["blocks.0.attn_out"], 1e-3)
        self.assertLess(floor["blocks.0.k_rope"], 1e-6)

    def precision(self, ids, seen):
        import places
        import prompt
        import rows

        want = self.exact.forward(ids, routes.of(seen, LAYERS))
        at = prompt.places(ENTRY)
        return rows.precision(seen, want, lambda n: list(range(len(ids))) if places.everywhere(n) else at(n))

    def test_a_class_that_has_mscale_already_is_refused(self):
        real = native.load

        def scaled(*args, **kw):
            model = real(*args, **kw)
            model.model.layers[3].self_attn.scaling *= 1.5896
            return model

        with mock.patch.object(native, "load", scaled), self.assertRaisesRegex(Untrusted, "which lacks mscale"):
            one_pass.load(FIXTURE, "float32")

    def test_forced_routes_are_followed_and_recorded(self):
        ids, free = self.run_one()
        wanted = {n: (r + 1) % 16 for n, r in routes.of(free, LAYERS).items()}
        wanted = {n: np.sort(r, 1) for n, r in wanted.items()}
        with mock.patch.object(one_pass, "recorded_routes", lambda *_: {n: r[None] for n, r in wanted.items()}):
            _, seen = self.run_one(recorded=Path("."))
        for layer, r in routes.of(seen, LAYERS).items():
            np.testing.assert_array_equal(r, wanted[layer])
        self.assertLess(max(self.precision(ids, seen).values()), 1e-5)
        with self.assertRaisesRegex(Failure, "not those that the recorded logits choose"):
            routes.demand_chosen(self.exact, seen, self.precision(ids, seen), True)

    def test_a_padded_prompt_is_the_same_prompt(self):
        [together] = one_pass.batches([e | {"batch": "b"} for e in PAIR])
        self.assertEqual([e.get("start", 0) for e in together], [0, 2])
        out = one_pass.run_batch(self.model, together, None)
        for e, (ids, _, _, seen) in zip(together, out):
            alone = self.exact.forward(ids, routes.of(seen, LAYERS), e.get("start", 0))
            for name in ("embed", "blocks.4.resid_post", "blocks.1.k_rope"):
                np.testing.assert_allclose(seen[name], alone[name][[0, 1]], rtol=1e-3, atol=1e-5)
        chosen = routes.of(out[1][3], LAYERS)
        seen = one_pass.unmasked(self.exact, out[1][0], chosen, 2)["blocks.4.resid_post"]
        self.assertGreater(np.abs(seen - self.exact.forward(out[1][0], chosen, 2)["blocks.4.resid_post"]).max(), 1e-2)

    def test_a_prompt_near_a_tie_is_not_clear(self):
        ids, seen = self.run_one()
        free = self.exact.forward(ids)
        routes.demand_claim("clear", "p", self.exact, free, seen)
        off = {k: v + 0.01 * (k == "blocks.3.router_logits") for k, v in seen.items()}
        with self.assertRaisesRegex(Failure, "layer 3, position"):
            routes.demand_claim("clear", "p", self.exact, free, off)

    def test_a_checkpoint_without_power_is_refused(self):
        ids, seen = self.run_one()
        chosen = routes.of(seen, LAYERS)
        floor = dict.fromkeys((f"blocks.{n}.resid_post" for n in range(LAYERS)), 1e-6)
        for weight, layer, fault in (
            ("self_attn.kv_b_proj", 0, "mscale missing in the softmax scale"),  # all values are 0
            ("mlp.shared_experts.down_proj", 3, "shared experts dropped"),
        ):
            exact = float64_deepseek2.Model(FIXTURE)
            exact.w[f"model.layers.{layer}.{weight}.weight"][:] = 0
            want = exact.forward(ids, chosen)

            def run(f, exact=exact):
                return exact.forward(ids, chosen, 0, f)

            with self.assertRaisesRegex(Failure, f"{fault} in layer {layer}"):
                power.demand(exact, run, [layer], ENTRY, want, floor)


class Gates(unittest.TestCase):
    def test_rows_without_power_are_refused(self):
        import gates

        folder = recording.ROOT / "fixtures" / gates.FOLDER
        with torch.no_grad():
            for name in gates.CONFIGS:
                config, gate = gate_pass.load(folder, name)
                tensors, _, by, margin = gate_pass.record(config, gate, gate_pass.rows())
                gate_pass.demand_power(name, config, tensors, by, margin)
                with self.assertRaisesRegex(Failure, "near a tie"):
                    gate_pass.demand_power(name, config, tensors, by, margin * 0)
            gate.e_score_correction_bias += 1.5  # scores above 0: the mask doesn't matter
            tensors, _, by, margin = gate_pass.record(config, gate, gate_pass.rows())
            with self.assertRaisesRegex(Failure, "mask 0"):
                gate_pass.demand_power(name, config, tensors, by, margin)


if __name__ == "__main__":
    unittest.main()
