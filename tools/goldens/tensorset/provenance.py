"""Manifests of sets of tensors, schema plumbline-golden-tensors-v1, and of what is recorded beside them."""

import hashlib
import json

import hashing

SCHEMA = "plumbline-golden-tensors-v1"


def entry(data):
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def entries(files):
    return {name: entry(data) for name, data in files.items()}


def encode(value):
    return (json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def build(root, recording, checkpoint, files, facts):
    """The manifest of what two passes recorded alike: files and the checkpoint's map names to bytes."""
    return {
        "schema": recording.schema,
        "set": recording.name,
        "goldens": {"folder": recording.goldens, "files": entries(files)},
        "checkpoint": {"folder": recording.checkpoint, "files": entries(checkpoint)},
        "cases": facts["cases"],
        "reference": facts["reference"],
        "arithmetic": facts["arithmetic"],
        "recorder": {
            "command": recording.command,
            "sources": {p.relative_to(root).as_posix(): hashing.sha256(p) for p in sorted(recording.sources)},
        },
        "passes": 2,
        "precision": {"measure": recording.measure, "cases": facts["precision"]},
    }
