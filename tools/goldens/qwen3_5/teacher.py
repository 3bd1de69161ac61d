#!/usr/bin/env python3
"""Runs the teacher plan with transformers in bfloat16: target.bin and evidence.json. Started by record.py, twice.

Per example that has points: the tokens before its first point are one batched prefill, all others single steps. A
generation prompt goes on for 32 tokens of its own choosing, the lowest index on a tie, past any end mark.
"""

import json
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tensorset"), str(HERE.parent)]

import guarded
import hashing
import installed
import native
import one_pass
import pins
import plan as plans
from failure import Failure

MAGIC, ROW = b"hf2q-exact-teacher-targets-v1\0", b"ROW1"
GREEDY = 32
REQUIREMENTS = HERE.parent / "requirements.txt"
DTYPE = "bfloat16"
NAME = "huggingface_transformers.Qwen3_5ForConditionalGeneration, run by Plumbline's tools/goldens/qwen3_5/teacher.py"
SUMMARY = "fixtures/qwen3_5-teacher/summary.json"


class Session:
    """One sequence with the model's own cache; only the last position's logits are computed, as float32 copies."""

    def __init__(self, model):
        self.model, self.cache, self.length = model, None, 0

    def feed(self, ids):
        import torch

        self.length += len(ids)
        out = self.model(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones((1, self.length), dtype=torch.long),
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        self.cache = out.past_key_values
        return out.logits[0, -1].float().numpy()


def execute(reference, model):
    """Rows in ordinal order, and per generation prompt the tokens and the rows that chose them."""
    plan = reference["prediction_plan"]
    rows, greedy = {}, {}
    for example in reference["examples"]:
        name, ids = example["stable_id"], example["token_ids"]
        points = [p for p in plan["prediction_points"] if p["stable_id"] == name]
        if not points:
            continue
        session, row = Session(model), None
        for point in points:
            n = point["prefix_token_count"]
            while session.length < n:
                # The first point's prefix in one piece, then token by token.
                row = session.feed(ids[session.length : n if row is None else session.length + 1])
            rows[point["point_ordinal"]] = row
        if points[-1]["kind"]["kind"] == "generation_next":
            chosen, made = [int(row.argmax())], [row]
            while len(chosen) < GREEDY:
                made.append(session.feed(chosen[-1:]))
                chosen.append(int(made[-1].argmax()))
            greedy[name] = chosen, made
    if sorted(rows) != list(range(len(plan["prediction_points"]))):
        raise Failure("target: got other ordinals than the plan's")
    return [rows[i] for i in range(len(rows))], greedy


def target(plan, rows):
    """The bytes of target.bin."""
    import numpy as np

    out = bytearray(MAGIC)
    for point, row in zip(plan["prediction_points"], rows, strict=True):
        if not np.isfinite(row).all():
            raise Failure(f"target: row {point['point_ordinal']} is not finite")
        payload = row.astype("<f4").tobytes()
        out += ROW + struct.pack("<QQ", point["point_ordinal"], len(row))
        out += bytes.fromhex(point["prefix_token_ids_sha256"]) + struct.pack("<Q", len(payload)) + payload
    return bytes(out)


def trajectories(plan, greedy):
    for prompt in plan["greedy_prompts"]:
        ids = greedy[prompt["stable_id"]][0]
        yield {
            "stable_id": prompt["stable_id"],
            "prompt_token_ids_sha256": prompt["prefix_token_ids_sha256"],
            "token_ids": ids,
            "token_ids_sha256": plans.sha256(b"hf2q-exact-teacher-greedy-tokens-v1" + plans.counted(ids)),
        }


def evidence(reference, data, greedy, versions):
    """The bytes of evidence.json: transformers computed, this file recorded."""
    plan = reference["prediction_plan"]
    out = {
        "schema_version": 1,
        "profile": "external_exact_teacher_reference_target_v1",
        "reference_input_sha256": reference["reference_input_sha256"],
        "prediction_plan_sha256": plan["manifest_sha256"],
        "target_artifact": {
            "artifact_id": "external_exact_teacher_logits",
            "role": "external_full_vocabulary_f32_target_rows",
            "byte_len": len(data),
            "sha256": plans.sha256(data),
        },
        "greedy_trajectories": list(trajectories(plan, greedy)),
        "implementation": {
            "name": NAME,
            "producer_sha256": hashing.sha256(Path(__file__).resolve()),
            "repository_url": "https://github.com/huggingface/transformers",
            "repository_commit": "v" + versions["transformers"],  # a wheel names no commit, only its release
            "package_version": versions["transformers"],
            "dependency_lock_sha256": hashing.sha256(REQUIREMENTS),
            "python_version": versions["python"],
            "framework_version": versions["torch"],
            "device": "cpu",
            "source_dtype": DTYPE,
            "logit_dtype": "f32_le",
            "attention_implementation": native.ATTENTION,
            "cache_enabled": True,
        },
        "external_reference": True,
        "runtime_dependency": False,
        **{a + "_authority": False for a in plans.AUTHORITIES},
        "dwq": False,
    }
    out["evidence_sha256"] = plans.sha256(plans.canonical(out))
    return plans.canonical(out) + b"\n"


def precision(exact, reference, rows, greedy):
    """Relative L2 of each target row, and per prompt of the worst row of its trajectory, from a float64 run."""
    from rows import apart

    ids = {e["stable_id"]: e["token_ids"] for e in reference["examples"]}
    plan = reference["prediction_plan"]
    full = {p["stable_id"]: one_pass.yardstick(exact, ids[p["stable_id"]])["logits"] for p in plan["prediction_points"]}
    points = [
        float(f"{apart(row, full[p['stable_id']][p['prefix_token_count'] - 1]):.3g}")
        for p, row in zip(plan["prediction_points"], rows)
    ]
    worst = {}
    for name, (chosen, made) in greedy.items():
        want = one_pass.yardstick(exact, ids[name] + chosen[:-1])["logits"][len(ids[name]) - 1 :]
        worst[name] = float(f"{apart(made, want).max():.3g}")
    return {"points": points, "trajectories": worst}


def run(root, checkpoint, folder):
    want = pins.load(HERE / "pins.json")
    got = installed.reference(want["modules"])
    pins.demand(got, want)
    import float64_qwen3_5
    import torch

    native.settle()
    reference = json.loads((root / SUMMARY).read_text(encoding="utf-8"))["reference_input"]
    model = one_pass.load(root / checkpoint, DTYPE)
    with torch.no_grad():
        pins.unpinned(installed.executed(lambda: [Session(model).feed([2, 3])]), want)
        rows, greedy = execute(reference, model)
    figures = precision(float64_qwen3_5.Model(root / checkpoint), reference, rows, greedy)
    data = target(reference["prediction_plan"], rows)
    (folder / "target.bin").write_bytes(data)
    (folder / "evidence.json").write_bytes(evidence(reference, data, greedy, got["versions"]))
    facts = {"reference": got, "arithmetic": native.describe(DTYPE), "precision": figures}
    facts["greedy_rows"] = {name: [row.tolist() for row in made] for name, (_, made) in greedy.items()}
    (folder / "facts.json").write_text(json.dumps(facts, allow_nan=False), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(guarded.run(lambda: run(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[4]))))
