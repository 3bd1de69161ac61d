"""The golden set of the teacher plan: plan, target and evidence, with a manifest of their own, and their comparison."""

import json
from dataclasses import dataclass

import numpy as np
import plan
import provenance
import recording
import rounding
import teacher
from rows import apart

SCHEMA = "plumbline-golden-teacher-v1"


@dataclass(frozen=True)
class Targets(recording.Recording):
    schema: str = SCHEMA
    measure: str = (
        "relative L2 of a recorded bfloat16 row from the same row of a float64 run of the recorder's own numpy forward: "
        "of each target row, and of the worst row of each trajectory"
    )

    def inputs(self, scratch):
        plan.write(scratch / teacher.SUMMARY)
        return {teacher.SUMMARY: (scratch / teacher.SUMMARY).read_bytes()}

    def build(self, checkpoint, files, facts, inputs):
        m = provenance.build(recording.ROOT, self, checkpoint, files, facts | {"cases": None})
        del m["cases"]
        m["plan"] = {"path": teacher.SUMMARY, **provenance.entry(inputs[teacher.SUMMARY])}
        m["precision"] = {"measure": self.measure, **facts["precision"]}
        return m

    def summary(self, facts):
        points, trajectories = facts["precision"]["points"], facts["precision"]["trajectories"]
        return [f"points: {max(points):.2e}", f"trajectories: {max(trajectories.values()):.2e}"]

    def rounding_only(self, name, old, new, facts):
        if name == "target.bin":
            return rows_apart(old[name], new, facts["precision"]["points"])
        return evidence_apart(json.loads(old[name]), json.loads(new), facts)


def rows_apart(old, new, floors):
    frame, start = 60, len(teacher.MAGIC)
    if len(old) != len(new) or not floors or (len(new) - start) % len(floors):
        return "another length"
    size = (len(new) - start) // len(floors)
    for i, floor in enumerate(floors):
        a, b = (x[start + i * size : start + (i + 1) * size] for x in (old, new))
        if old[:start] != new[:start] or a[:frame] != b[:frame]:
            return f"row {i}: another frame"
        worst = apart(np.frombuffer(b[frame:], "<f4"), np.frombuffer(a[frame:], "<f4"))
        if not worst <= rounding.MULTIPLE * floor:
            return f"row {i}: {worst:.2e} apart"
    return None


def evidence_apart(a, b, facts):
    """Trajectories may part at a tie, and say nothing behind it."""
    mine, theirs = a["greedy_trajectories"], b["greedy_trajectories"]
    for e in (a, b):
        e.pop("evidence_sha256")
        e["target_artifact"].pop("sha256")
        e["greedy_trajectories"] = [(t["stable_id"], t["prompt_token_ids_sha256"]) for t in e["greedy_trajectories"]]
    if a != b:
        return "other evidence"
    for x, y in zip(mine, theirs):
        name = x["stable_id"]
        parted = next((i for i, (p, q) in enumerate(zip(x["token_ids"], y["token_ids"])) if p != q), None)
        if parted is None:
            continue
        row, was = facts["greedy_rows"][name][parted], x["token_ids"][parted]
        if not rounding.tied(row, was, facts["precision"]["trajectories"][name]):
            return f"{name}: token {parted}: got {y['token_ids'][parted]}, want {was}, which is no tie"
    return None
