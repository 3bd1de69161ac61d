"""Writes a plan, and the target and evidence of a model made up for it.

    python3.11 make_case.py FOLDER [VOCABULARY]

With another vocabulary than 37 it writes the plan alone.

The model knows nothing: a row is drawn from a hash of the ids before it, in eighths,
so that many values tie. case_test.go has the same formula.
"""

import hashlib
import json
import struct
import sys
from pathlib import Path

VOCABULARY = 37


def canonical(value):
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def ids_bytes(ids):
    return struct.pack(f"<Q{len(ids)}I", len(ids), *ids)


def tokens_sha256(name, ids):
    return sha256(b"hf2q-token-ids-v1" + struct.pack("<I", len(name.encode())) + name.encode() + ids_bytes(ids))


def prefix_sha256(ids):
    return sha256(b"hf2q-teacher-prefix-token-ids-v1" + ids_bytes(ids))


def logits(ids):
    state = 7
    for i in ids:
        state = (state * 1_000_003 + i + 1) % (1 << 31)
    return [((state >> (i % 11)) * (i + 3) % 97 - 48) / 8 for i in range(VOCABULARY)]


def argmax(row):
    return row.index(max(row))


# (id, mode, tokens, prefix lengths of teacher-forced points, a greedy prompt?)
EXAMPLES = [
    ("forced/one", "completed_transcript", [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], [4, 5, 5, 8, 10], False),
    ("no points", "completed_transcript", [36, 0, 36], [], False),
    ("gen/é 😀", "generation_prompt", [8, 9, 7, 9], [], True),
    ("gen/<&>\u2028", "generation_prompt", [0], [], True),
    ("forced/two", "completed_transcript", [2, 7, 1, 8, 2, 8], [1, 2], False),
]


def plan():
    points, prompts = [], []
    for name, _, ids, forced, generate in EXAMPLES:
        for n in forced:
            points.append((name, {"kind": "teacher_forced", "target_token_index": n, "target_token_id": ids[n]}, ids[:n]))
        if generate:
            points.append((name, {"kind": "generation_next"}, ids))
            prompts.append({"stable_id": name, "prefix_token_count": len(ids), "prefix_token_ids_sha256": prefix_sha256(ids)})
    value = {
        "schema_version": 1,
        "dataset_partition_manifest_sha256": sha256(b"partition"),
        "calibration_corpus_artifact_sha256": sha256(b"corpus"),
        "calibration_manifest_sha256": sha256(b"calibration"),
        "rendered_token_stream_sha256": sha256(b"stream"),
        "limits": {"max_examples": 8, "max_tokens": 64, "max_prediction_points": 16, "max_greedy_prompts": 4},
        "total_example_count": len(EXAMPLES),
        "total_token_count": sum(len(ids) for _, _, ids, _, _ in EXAMPLES),
        "total_rendered_utf8_bytes": 99,
        "examples": [
            {"stable_id": name, "render_mode": mode, "token_count": len(ids), "token_ids_sha256": tokens_sha256(name, ids)}
            for name, mode, ids, _, _ in EXAMPLES
        ],
        "prediction_points": [
            {"point_ordinal": i, "stable_id": name, "kind": kind, "prefix_token_count": len(prefix), "prefix_token_ids_sha256": prefix_sha256(prefix)}
            for i, (name, kind, prefix) in enumerate(points)
        ],
        "greedy_prompts": prompts,
    }
    value["manifest_sha256"] = sha256(canonical(value))
    return value


def reference_input(source, vocabulary):
    value = {
        "schema_version": 1,
        "profile": "exact_teacher_reference_input_v1",
        "prediction_plan": source,
        "vocabulary_size": vocabulary,
        "target_limits": {"max_vocabulary_size": max(64, vocabulary), "max_prediction_rows": 16, "max_target_bytes": 4096 * max(1, vocabulary // 37), "top_k": 4},
        "examples": [{"stable_id": name, "render_mode": mode, "token_ids": ids} for name, mode, ids, _, _ in EXAMPLES],
    }
    for who in ("source_teacher", "sensitivity", "allocator", "selector", "autoquant"):
        value[f"{who}_authority"] = False
    value["runtime_dependency"] = False
    value["reference_input_sha256"] = sha256(canonical(value))
    return value


def target(source):
    data = b"hf2q-exact-teacher-targets-v1\0"
    tokens = {name: ids for name, _, ids, _, _ in EXAMPLES}
    for p in source["prediction_points"]:
        row = logits(tokens[p["stable_id"]][: p["prefix_token_count"]])
        data += b"ROW1" + struct.pack("<QQ", p["point_ordinal"], VOCABULARY) + bytes.fromhex(p["prefix_token_ids_sha256"])
        data += struct.pack(f"<Q{VOCABULARY}f", 4 * VOCABULARY, *row)
    return data


def trajectory(ids):
    made = []
    while len(made) < 32:
        made.append(argmax(logits(ids + made)))
    return made


def evidence(given, rows):
    source = given["prediction_plan"]
    tokens = {name: ids for name, _, ids, _, _ in EXAMPLES}
    made = {p["stable_id"]: trajectory(tokens[p["stable_id"]]) for p in source["greedy_prompts"]}
    value = {
        "schema_version": 1,
        "profile": "external_exact_teacher_reference_target_v1",
        "reference_input_sha256": given["reference_input_sha256"],
        "prediction_plan_sha256": source["manifest_sha256"],
        "target_artifact": {
            "artifact_id": "external_exact_teacher_logits",
            "role": "external_full_vocabulary_f32_target_rows",
            "byte_len": len(rows),
            "sha256": sha256(rows),
        },
        "greedy_trajectories": [
            {
                "stable_id": p["stable_id"],
                "prompt_token_ids_sha256": p["prefix_token_ids_sha256"],
                "token_ids": made[p["stable_id"]],
                "token_ids_sha256": sha256(b"hf2q-exact-teacher-greedy-tokens-v1" + ids_bytes(made[p["stable_id"]])),
            }
            for p in source["greedy_prompts"]
        ],
        "implementation": {
            "name": "made up",
            "producer_sha256": sha256(b"producer"),
            "repository_url": "https://example.org/<made-up>",
            "repository_commit": "",
            "package_version": "v0",
            "dependency_lock_sha256": sha256(b"modules"),
            "go_version": "go1",
            "framework_version": "none",
            "device": "paper",
            "source_dtype": "eighths",
            "logit_dtype": "f32_le",
            "attention_implementation": "none",
            "cache_enabled": True,
        },
        "external_reference": True,
    }
    for flag in ("runtime_dependency", *(f"{who}_authority" for who in ("source_teacher", "sensitivity", "allocator", "selector", "autoquant")), "dwq"):
        value[flag] = False
    value["evidence_sha256"] = sha256(canonical(value))
    return value


def main(folder, vocabulary=VOCABULARY):
    source = plan()
    given = reference_input(source, int(vocabulary))
    rows = target(source)
    summary = {
        "executed": True,
        "structural_target_receipt": {"made up": True},
        "prediction_plan_sha256": source["manifest_sha256"],
        "reference_input": given,
    }
    folder = Path(folder)
    (folder / "summary.json").write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if int(vocabulary) != VOCABULARY:
        return
    (folder / "target.bin").write_bytes(rows)
    (folder / "evidence.json").write_bytes(canonical(evidence(given, rows)) + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
