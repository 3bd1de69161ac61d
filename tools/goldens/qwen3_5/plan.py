#!/usr/bin/env python3
"""Writes the teacher plan of the Qwen3.5 fixture: a summary of examples, receipts and prediction points.

    python tools/goldens/qwen3_5/plan.py fixtures/qwen3_5-teacher/summary.json

The fixture has no tokenizer. A rendered text's ids are its UTF-8 bytes, each turn mark one id of its own. The
authorities that a plan names don't exist here; what stands for them are hashes of texts.json and of what is made of it.
"""

import hashlib
import json
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import model

MARKS = {"<|im_start|>": model.TURN_START, "<|im_end|>": model.TURN_END}
AUTHORITIES = ("source_teacher", "sensitivity", "allocator", "selector", "autoquant")


def canonical(value):
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def counted(ids):
    return struct.pack(f"<Q{len(ids)}I", len(ids), *ids)


def token_ids_frame(stable_id, ids):
    name = stable_id.encode()
    return b"hf2q-token-ids-v1" + struct.pack("<I", len(name)) + name + counted(ids)


def prefix_sha256(ids):
    return sha256(b"hf2q-teacher-prefix-token-ids-v1" + counted(ids))


def rendered(entry):
    """The text: turns between marks, and the start of an answer where one is to be generated."""
    text = "".join(f"<|im_start|>{role}\n{said}<|im_end|>\n" for role, said in entry["turns"])
    return text + ("<|im_start|>assistant\n" if entry["render_mode"] == "generation_prompt" else "")


def tokens(text):
    for mark, token in MARKS.items():
        if mark in text:
            before, after = text.split(mark, 1)
            return [*tokens(before), token, *tokens(after)]
    return list(text.encode())


def points(entry, ids):
    """Prefix lengths and kinds of one example's points."""
    if entry["prefixes"] == "end":
        return [(len(ids), {"kind": "generation_next"})]
    forced = {"kind": "teacher_forced"}
    return [(n, forced | {"target_token_index": n, "target_token_id": ids[n]}) for n in entry["prefixes"]]


def summary(source):
    entries = json.loads(source)
    texts = [rendered(e) for e in entries]
    ids = [tokens(t) for t in texts]
    frames = [token_ids_frame(e["stable_id"], i) for e, i in zip(entries, ids)]
    names = [{"stable_id": e["stable_id"], "render_mode": e["render_mode"]} for e in entries]
    asked = [(e["stable_id"], i, *p) for e, i in zip(entries, ids) for p in points(e, i)]
    plan = {
        "schema_version": 1,
        "dataset_partition_manifest_sha256": sha256(canonical([n["stable_id"] for n in names])),
        "calibration_corpus_artifact_sha256": sha256("".join(texts).encode()),
        "calibration_manifest_sha256": sha256(source),
        "rendered_token_stream_sha256": sha256(b"".join(frames)),
        "limits": {"max_examples": 16, "max_tokens": 4096, "max_prediction_points": 64, "max_greedy_prompts": 4},
        "total_example_count": len(entries),
        "total_token_count": sum(map(len, ids)),
        "total_rendered_utf8_bytes": sum(len(t.encode()) for t in texts),
        "examples": [n | {"token_count": len(i), "token_ids_sha256": sha256(f)} for n, i, f in zip(names, ids, frames)],
        "prediction_points": [
            {
                "point_ordinal": ordinal,
                "stable_id": name,
                "kind": kind,
                "prefix_token_count": n,
                "prefix_token_ids_sha256": prefix_sha256(i[:n]),
            }
            for ordinal, (name, i, n, kind) in enumerate(asked)
        ],
        "greedy_prompts": [
            {"stable_id": name, "prefix_token_count": n, "prefix_token_ids_sha256": prefix_sha256(i[:n])}
            for name, i, n, kind in asked
            if kind["kind"] == "generation_next"
        ],
    }
    plan["manifest_sha256"] = sha256(canonical(plan))
    reference = {
        "schema_version": 1,
        "profile": "exact_teacher_reference_input_v1",
        "prediction_plan": plan,
        "vocabulary_size": model.VOCAB,
        "target_limits": {"max_vocabulary_size": 1024, "max_prediction_rows": 64, "max_target_bytes": 1 << 20, "top_k": 8},
        "examples": [n | {"token_ids": i} for n, i in zip(names, ids)],
        **{a + "_authority": False for a in AUTHORITIES},
        "runtime_dependency": False,
    }
    reference["reference_input_sha256"] = sha256(canonical(reference))
    return {
        "executed": True,
        "structural_target_receipt": {"synthetic": True, "made_by": "tools/goldens/qwen3_5/plan.py"},
        "prediction_plan_sha256": plan["manifest_sha256"],
        "reference_input": reference,
    }


def write(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    made = summary((HERE / "texts.json").read_bytes())
    path.write_text(json.dumps(made, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
