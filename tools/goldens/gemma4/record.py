#!/usr/bin/env python3
"""Records the attention goldens of the Gemma 4 fixture from transformers, or checks the ones that are there.

    python tools/goldens/gemma4/record.py --check       records again, compares byte for byte, writes nothing
    python tools/goldens/gemma4/record.py --rounding    the same, where values may differ as rounding does on another CPU
    python tools/goldens/gemma4/record.py --accept      replaces fixture, goldens and manifest
    python tools/goldens/gemma4/record.py --pin         prints a new pins.json: only to move to another reference

Exit codes as of ../record.py: 0 nothing differs, or written; 1 goldens differ; 2 the run can't be trusted.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import arithmetic
import hashing
import publish
from failure import Failure, Untrusted

ROOT = HERE.parents[2]
NAME = "gemma4-window"
CHECKPOINT, GOLDENS, MANIFEST = f"fixtures/{NAME}", f"golden/{NAME}", f"golden/{NAME}.manifest.json"
SCHEMA = "plumbline-golden-tensors-v1"
MEASURE = (
    "largest relative L2 of a recorded float32 row from the same row of a float64 run of the recorder's own numpy forward"
)
# Relative L2 between two float32 runs on different CPUs: a multiple of what each is away from float64.
ROUNDING = 4


def child(argv):
    code = subprocess.run([sys.executable, "-B", *argv], env=arithmetic.environment(os.environ), check=False).returncode
    if code:
        raise (Failure if code == 3 else Untrusted)(f"{Path(argv[0]).name} gave up with exit code {code}; nothing was written")


def tree(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


def passes(scratch):
    """The fixture, and what two processes recorded of it alike."""
    child([str(HERE / "model.py"), str(scratch / CHECKPOINT)])
    out = []
    for i in range(2):
        folder = scratch / f"pass{i}"
        folder.mkdir()
        child([str(HERE / "one_pass.py"), str(scratch), CHECKPOINT, str(folder)])
        out.append(tree(folder))
    if out[0] != out[1]:
        raise Failure("the two passes differ, so this is no golden: " + ", ".join(n for n in out[0] if out[0][n] != out[1].get(n)))
    return tree(scratch / CHECKPOINT), out[0]


def entry(data):
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def build(checkpoint, files, facts):
    sources = sorted([*HERE.glob("*.py"), HERE / "prompts.json"])
    manifest = {
        "schema": SCHEMA,
        "set": NAME,
        "goldens": {"folder": GOLDENS, "files": {n: entry(d) for n, d in files.items()}},
        "checkpoint": {"folder": CHECKPOINT, "files": {n: entry(d) for n, d in checkpoint.items()}},
        "cases": facts["cases"],
        "reference": facts["reference"],
        "arithmetic": facts["arithmetic"],
        "recorder": {
            "command": "python tools/goldens/gemma4/record.py",
            "sources": {p.relative_to(ROOT).as_posix(): hashing.sha256(p) for p in sources},
        },
        "passes": 2,
        "precision": {"measure": MEASURE, "cases": facts["precision"]},
    }
    return (json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def rounding_only(old, new, facts, case):
    """Why two recordings of a case's tensors differ by more than rounding; None where they don't."""
    import numpy as np
    from safetensors.numpy import load

    a, b = load(old), load(new)
    if a.keys() != b.keys() or any(a[k].shape != b[k].shape for k in a):
        return "other tensors"
    for name in a:
        x, y = a[name].astype("f8"), b[name].astype("f8")
        apart = (np.linalg.norm(x - y, axis=-1) / np.linalg.norm(y, axis=-1)).max()
        if not apart <= ROUNDING * max(facts["precision"][case][name], 2**-24):
            return f"{name}: {apart:.2e} apart"
    return None


def compare(contents, facts, tolerant):
    bad = []
    for rel, data in contents.items():
        path = ROOT / rel
        old = path.read_bytes() if path.exists() else None
        if old == data:
            continue
        if old is None:
            bad.append(f"missing {rel}")
        elif tolerant and rel == MANIFEST:
            a, b = json.loads(old), json.loads(data)
            for m in (a, b):
                m.pop("precision")
                for n in [n for n in m["goldens"]["files"] if n.endswith(".safetensors")]:
                    m["goldens"]["files"].pop(n)
            bad += [f"changed {rel}"] if a != b else []
        elif tolerant and rel.startswith(GOLDENS) and rel.endswith(".safetensors"):
            why = rounding_only(old, data, facts, Path(rel).stem)
            bad += [f"changed {rel}: {why}"] if why else []
            print(f"differs {rel}: {why or 'as rounding does'}")
        else:
            bad.append(f"changed {rel}")
    for folder in (CHECKPOINT, GOLDENS):
        there = [p.name for p in (ROOT / folder).iterdir()] if (ROOT / folder).is_dir() else []
        bad += [f"orphan {folder}/{n}" for n in sorted(there) if f"{folder}/{n}" not in contents]
    if bad:
        raise Failure("goldens differ (--accept replaces them):\n  " + "\n  ".join(bad))
    print("check: every golden is reproduced")


def pin():
    import installed
    import one_pass
    import torch

    arithmetic.settle()
    with tempfile.TemporaryDirectory() as scratch:
        child([str(HERE / "model.py"), scratch])
        model = one_pass.load(Path(scratch))
        with torch.no_grad():
            seen = installed.executed(lambda: one_pass.decode(model, [2, 3], [4, 5]))
    json.dump(installed.reference(sorted(seen)), sys.stdout, indent=1, sort_keys=True)
    print()


def run(args):
    with tempfile.TemporaryDirectory(prefix="goldens-") as scratch:
        checkpoint, files = passes(Path(scratch))
    facts = json.loads(files.pop("facts.json"))
    manifest = build(checkpoint, files, facts)
    contents = {f"{CHECKPOINT}/{n}": d for n, d in checkpoint.items()} | {f"{GOLDENS}/{n}": d for n, d in files.items()}
    contents |= {MANIFEST: manifest, MANIFEST + ".sha256": f"{entry(manifest)['sha256']}  {Path(MANIFEST).name}\n".encode()}
    for name, cases in facts["precision"].items():
        print(f"precision floor of {name}: {max(cases.values()):.2e} relative L2 of float32 from float64")
    if not args.accept:
        contents.pop(MANIFEST + ".sha256") if args.rounding else None
        return compare(contents, facts, args.rounding)
    print("\n".join(f"wrote {rel}" for rel in publish.files(ROOT, contents)) or "nothing to write")
    return None


def main(argv):
    parser = argparse.ArgumentParser(prog="record.py", description=__doc__.split("\n")[0])
    group = parser.add_mutually_exclusive_group(required=True)
    for flag in ("--check", "--rounding", "--accept", "--pin"):
        group.add_argument(flag, action="store_true")
    args = parser.parse_args(argv)
    if args.pin and any(os.environ.get(k) != v for k, v in arithmetic.ENVIRONMENT.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], arithmetic.environment(os.environ))
    try:
        pin() if args.pin else run(args)
    except Failure as err:
        print(f"goldens: {err}", file=sys.stderr)
        return err.code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
