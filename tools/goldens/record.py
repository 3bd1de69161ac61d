#!/usr/bin/env python3
"""Records the goldens of a checkpoint from transformers, or checks the ones that are there. See README.md.

    python tools/goldens/record.py --check              records again, compares byte for byte, writes nothing
    python tools/goldens/record.py --accept             replaces what changed
    python tools/goldens/record.py --create NAME        writes the goldens of a prompt that has none yet
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import arithmetic
import changes
import floor
import hashing
import manifest
import pins
import publish
import sources
from failure import Failure, Untrusted
from layout import TOOL, Layout
from one_pass import REFUSED

PASSES = 2


def passes(layout, scratch):
    """Records PASSES times, each in a process of its own; returns the first's folder when all agree in every byte."""
    folders = []
    for i in range(PASSES):
        folder = scratch / f"pass{i}"
        folder.mkdir()
        argv = [sys.executable, "-B", str(Path(__file__).with_name("one_pass.py")), str(layout.root), layout.name, str(folder)]
        print(f"pass {i + 1} of {PASSES}", file=sys.stderr, flush=True)
        code = subprocess.run(argv, env=arithmetic.environment(os.environ), check=False).returncode
        if code:
            kind = Failure if code == REFUSED else Untrusted
            raise kind(f"pass {i + 1} gave up with exit code {code}; nothing was written")
        folders.append(folder)
    first = tree(folders[0])
    for i, folder in enumerate(folders[1:], 2):
        other = tree(folder)
        differ = sorted(n for n in first.keys() | other.keys() if first.get(n) != other.get(n))
        if differ:
            raise Failure(f"passes 1 and {i} differ, so this is no golden: " + ", ".join(differ))
    return folders[0]


def tree(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def build(layout, folder, command):
    """The manifest of a recording."""
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    return {
        "schema": manifest.SCHEMA,
        "set": layout.name,
        "goldens": {"folder": layout.goldens, "files": hashing.folder(folder / "dumps")},
        "checkpoint": {
            "folder": layout.checkpoint,
            "files": hashing.folder(layout.at(layout.checkpoint), leave_out=("prompts.json",)),
        },
        "prompts": {
            "source": {"path": layout.prompts_source, **hashing.entry(layout.at(layout.prompts_source))},
            "written": {"path": layout.prompts_written, **hashing.entry(folder / "prompts.json")},
        },
        "cases": facts["cases"],
        "reference": facts["reference"],
        "arithmetic": facts["arithmetic"],
        "recorder": {"command": command, "sources": sources.digests(layout)},
        "passes": PASSES,
        "max_new": facts["max_new"],
        "stop": facts["stop"],
        "precision": {"measure": manifest.MEASURE, "cases": facts["precision"]},
    }


def existing(layout):
    """Name -> bytes of the golden folder; empty when it isn't there."""
    folder = layout.at(layout.goldens)
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())} if folder.is_dir() else {}


def derived(layout, old, new, prompts_new, creating):
    """The two files that follow from the others: what changed in them, and whether adding prompts explains it."""
    path = layout.at(layout.prompts_written)
    prompts_old = path.read_bytes() if path.exists() else None
    lines, explained = [], creating
    if prompts_old != prompts_new:
        lines.append(f"changed {layout.prompts_written}" if prompts_old else f"missing {layout.prompts_written}")
        kept = json.loads(prompts_new)
        explained &= all(p in kept for p in json.loads(prompts_old or b"[]"))
    if old is None:
        lines.append(f"missing {layout.manifest}")
    elif old != new:
        lines.append(f"changed {layout.manifest}:")
        lines += [f"  {line}" for line in manifest.differences(old, new) if not line.startswith("goldens.files.")]
    return lines, explained


def run(args, layout, command):
    pins.load(layout.at(layout.pins))  # refuse a broken one before anything else
    old = manifest.load(layout.at(layout.manifest))
    with tempfile.TemporaryDirectory(prefix="goldens-") as scratch:
        folder = passes(layout, Path(scratch))
        fresh = {n.removeprefix("dumps/"): d for n, d in tree(folder).items() if n.startswith("dumps/")}
        made = build(layout, folder, command)
        prompts_new = (folder / "prompts.json").read_bytes()
    if old is not None and not args.accept:
        arithmetic.demand(made["arithmetic"], old["arithmetic"])
    print("\n".join(floor.lines(made["precision"]["cases"])))

    plan = changes.plan(existing(layout), fresh)
    if old is not None and (args.check or plan.clean()):
        made["recorder"]["command"] = old["recorder"]["command"]  # this command records nothing new
    creating = bool(plan.new) and bool(args.create or args.all_new)
    also, explained = derived(layout, old, made, prompts_new, creating)
    print("\n".join(changes.lines(plan) + also))
    changes.demand(plan, args.accept, args.create, args.all_new)
    if also and not (args.accept or explained):
        raise Failure("what follows from the goldens changed (--accept replaces it):\n  " + "\n  ".join(also))
    if args.check:
        print("check: every golden is reproduced byte for byte")
        return
    contents = {f"{layout.goldens}/{n}": d for n, d in fresh.items()}
    contents |= {layout.prompts_written: prompts_new, layout.manifest: manifest.encode(made)}
    wrote = publish.files(layout.root, contents)
    print("\n".join(f"wrote {rel}" for rel in wrote) or "nothing to write")


def parse(argv):
    parser = argparse.ArgumentParser(prog="record.py", description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only; any difference is exit code 1")
    parser.add_argument("--accept", action="store_true", help="replace goldens that changed")
    parser.add_argument("--create", action="append", default=[], metavar="NAME", help="write a missing prompt's goldens")
    parser.add_argument("--all-new", action="store_true", help="write all that are missing")
    parser.add_argument("--set", default="qwen2-trained", help="the golden set (default %(default)s)")
    args = parser.parse_args(argv)
    if args.check and (args.accept or args.create or args.all_new):
        parser.error("--check writes nothing: leave out --accept, --create and --all-new")
    return args


def main(argv):
    args = parse(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was begun is cleaned up
    try:
        run(args, Layout(name=args.set), " ".join(["python", f"{TOOL}/record.py", *argv]))
    except Failure as err:
        print(f"goldens: {err}", file=sys.stderr)
        return err.code
    except OSError as err:
        print(f"goldens: {err.strerror}; nothing was written", file=sys.stderr)
        return Untrusted.code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
