"""Tests that the three self-checks, the decoder and the float64 yardstick can fail. Run in the recorder's environment:

    make test-goldens-torch

A model of three layers with random weights is made on the fly, so no checkpoint is needed.
"""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import arithmetic

os.environ.update(arithmetic.environment(os.environ))

import decode
import float64
import installed
import one_pass
import pins
import residual
import torch
from failure import Failure, Untrusted
from layout import ROOT, Layout
from transformers import DynamicCache, Qwen2Config, Qwen2ForCausalLM

IDS = [3, 1, 4, 1, 5]


def tiny():
    torch.manual_seed(7)
    cfg = Qwen2Config(
        vocab_size=32, hidden_size=16, intermediate_size=24, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, tie_word_embeddings=True, initializer_range=0.3,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
    )  # fmt: skip
    model = Qwen2ForCausalLM._from_config(cfg, attn_implementation=arithmetic.ATTENTION).eval()
    for name, p in model.named_parameters():
        if p.ndim == 1:
            p.data = torch.rand_like(p) + 0.5
    model.generation_config.eos_token_id = [30, 31]
    return model


class NoTokenizer:
    def decode(self, ids, skip_special_tokens):
        assert skip_special_tokens
        return " ".join(map(str, ids))


class SelfChecks(unittest.TestCase):
    def setUp(self):
        arithmetic.settle()
        self.model = tiny()
        guard = torch.no_grad()
        guard.__enter__()
        self.addCleanup(guard.__exit__, None, None, None)
        self.rows = residual.capture(self.model, IDS)

    def fails(self, text, check, rows):
        with self.assertRaises(Failure) as caught:
            check(self.model, IDS, rows)
        self.assertIn(text, str(caught.exception))

    def test_a_sound_capture_passes(self):
        self.assertEqual(4, len(self.rows))
        residual.check_endpoints(self.model, IDS, self.rows)
        residual.check_interior(self.model, IDS, self.rows)

    def test_the_models_own_hidden_states_are_refused(self):
        cache = DynamicCache()
        for _, token in residual.each_token(IDS):
            out = self.model(input_ids=token, past_key_values=cache, use_cache=True, output_hidden_states=True)
        rows = [h[0, -1] for h in out.hidden_states]
        self.fails("after the final norm", residual.check_endpoints, rows)

    def test_a_batched_capture_is_refused(self):
        with residual.Tap(self.model.model) as tap:
            self.model(input_ids=torch.tensor([IDS]))
        # Another order of the sums: not every row need differ, one has to.
        self.fails("interior check: row", residual.check_interior, tap.rows)

    def test_the_first_tokens_embedding_is_refused(self):
        rows = [self.model.get_input_embeddings().weight[IDS[0]], *self.rows[1:]]
        self.fails("embedding of the last token, 5", residual.check_endpoints, rows)

    def test_stale_shifted_and_aliased_rows_are_refused(self):
        earlier = residual.capture(self.model, IDS[:-1])
        r = self.rows
        self.fails("row 2", residual.check_interior, [*r[:2], earlier[2], r[3]])
        self.fails("row 1", residual.check_interior, [r[0], r[0], *r[1:3]])
        self.fails("row 1", residual.check_interior, [r[0], r[2], r[2], r[3]])

    def test_the_capture_does_not_alias_the_models_memory(self):
        self.assertNotEqual(self.rows[0].data_ptr(), self.model.get_input_embeddings().weight[IDS[-1]].data_ptr())

    def test_decode_keeps_the_stop_id_and_each_row_chose_its_token(self):
        free = decode.greedy(self.model, NoTokenizer(), IDS, [], 4)
        self.assertEqual(4, len(free.output_ids))
        self.assertEqual(free.output_ids, [int(r.argmax()) for r in free.rows])
        stopped = decode.greedy(self.model, NoTokenizer(), IDS, [free.output_ids[1]], 4)
        n = free.output_ids.index(free.output_ids[1]) + 1
        self.assertEqual((free.output_ids[:n], n), (stopped.output_ids, len(stopped.rows)))
        self.assertNotIn(str(free.output_ids[1]), stopped.text.split())

    def test_the_float64_forward_agrees_and_notices_a_changed_weight(self):
        with tempfile.TemporaryDirectory() as d:
            self.model.save_pretrained(d)
            exact = float64.Model(Path(d))
            out = decode.greedy(self.model, NoTokenizer(), IDS, [], 3)
            args = (IDS, out.output_ids, [r.numpy() for r in self.rows], [r.numpy() for r in out.rows])
            p = float64.precision(exact, *args)
            self.assertEqual((4, 3), (len(p["layers"]), len(p["logits"])))
            self.assertEqual(0, p["layers"][0])
            self.assertTrue(max(p["layers"] + p["logits"]) < 5e-6, p)
            exact.w["model.layers.1.self_attn.k_proj.bias"][:] = 0
            p = float64.precision(exact, *args)
            self.assertTrue(p["layers"][1] < 5e-6 < 1e-3 < p["layers"][2], p)

    def test_another_library_version_is_refused(self):
        want = pins.load(ROOT / Layout.pins)
        got = installed.reference(want["modules"])
        pins.demand(got, want)
        with tempfile.TemporaryDirectory() as d:
            other = json.loads(json.dumps(want))
            other["modules"]["transformers/cache_utils.py"] = "0" * 64
            root = Path(d)
            (root / Layout.pins).parent.mkdir(parents=True)
            (root / Layout.pins).write_text(json.dumps(other))
            with self.assertRaises(Untrusted) as caught:
                one_pass.run(Layout(root), root)
            self.assertIn("SHA-256 of transformers/cache_utils.py: got ", str(caught.exception))
            self.assertIn("want 0000", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
