"""Records the sets of a family twice, compares them with what is there, or puts them in place."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import arithmetic
import installed
import provenance
import publish
import rounding
from failure import Failure, Untrusted

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SHARED = [HERE.parent / f"{n}.py" for n in ("arithmetic", "failure", "hashing", "installed", "pins", "publish")]
MEASURE = "largest relative L2 of a recorded row from the same row of a float64 run of the recorder's own numpy forward"


@dataclass(frozen=True)
class Recording:
    """One golden set. program, started with the scratch root, the checkpoint's path in it, the set's name and an empty
    folder, fills that folder, facts.json included. Where rounding may differ and choices is set, it gets the folder of the
    recorded goldens too, and makes the choices that are recorded there."""

    name: str
    checkpoint: str
    command: str
    program: Path
    sources: tuple
    schema: str = provenance.SCHEMA
    measure: str = MEASURE
    choices: bool = False

    @property
    def goldens(self):
        return f"golden/{self.name}"

    @property
    def manifest(self):
        return f"golden/{self.name}.manifest.json"

    def inputs(self, scratch):
        """Paths -> bytes of what else the set is recorded from, made by the recorder too."""
        return {}

    def build(self, checkpoint, files, facts, inputs):
        return provenance.build(ROOT, self, checkpoint, files, facts)

    def summary(self, facts):
        return [f"{case}: {max(figures.values()):.2e}" for case, figures in facts["precision"].items()]

    def rounding_only(self, name, old, new, facts):
        """Why a golden differs by more than rounding; None where it doesn't. old is the whole folder as it was."""
        case, _, kind = name.rpartition(".")
        floor = facts["precision"][case]
        if kind == "safetensors":
            return rounding.tensors(old[name], new, floor)
        from safetensors.numpy import load

        return rounding.case(old[name], new, load(old[case + ".safetensors"])["logits"], floor["logits"])


def sources(folder, without=()):
    """What a set's bytes come from: the family's own modules and prompts, and the shared modules."""
    own = [p for p in [*folder.glob("*.py"), *folder.glob("*.json")] if p.name not in (*without, "pins.json")]
    return tuple([p for p in [*own, *HERE.glob("*.py")] if not p.name.startswith("selfchecks")] + SHARED)


def child(argv):
    code = subprocess.run([sys.executable, "-B", *argv], env=arithmetic.environment(os.environ), check=False).returncode
    if code:
        raise (Failure if code == 3 else Untrusted)(f"{Path(argv[0]).name} gave up with exit code {code}; nothing was written")


def tree(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())} if folder.is_dir() else {}


def passes(recording, scratch, tolerant=False):
    """What two processes recorded alike."""
    out, recorded = [], ROOT / recording.goldens
    more = [str(recorded)] if tolerant and recording.choices and recorded.is_dir() else []
    for i in range(2):
        folder = scratch / f"{recording.name}.{i}"
        folder.mkdir()
        child([str(recording.program), str(scratch), recording.checkpoint, recording.name, str(folder), *more])
        out.append(tree(folder))
    if out[0] != out[1]:
        differ = sorted(n for n in out[0].keys() | out[1].keys() if out[0].get(n) != out[1].get(n))
        raise Failure("the two passes differ, so this is no golden: " + ", ".join(differ))
    return out[0]


def compare(recording, contents, facts, tolerant):
    """What differs from the files that are there."""
    bad, old = [], tree(ROOT / recording.goldens)
    for rel, data in contents.items():
        path = ROOT / rel
        there = path.read_bytes() if path.exists() else None
        if there == data:
            continue
        if there is None:
            bad.append(f"missing {rel}")
        elif tolerant and rel == recording.manifest:
            bad += [] if without_values(there) == without_values(data) else [f"changed {rel}"]
        elif tolerant and Path(rel).parent.as_posix() == recording.goldens:
            why = recording.rounding_only(Path(rel).name, old, data, facts)
            bad += [f"changed {rel}: {why}"] if why else []
            print(f"differs {rel}: {why or 'as rounding does'}")
        elif not (tolerant and rel == recording.manifest + ".sha256"):
            bad.append(f"changed {rel}")
    for folder in sorted({Path(rel).parent for rel in contents} - {Path("golden")}):
        bad += [f"orphan {folder / n}" for n in tree(ROOT / folder) if (folder / n).as_posix() not in contents]
    return bad


def without_values(data):
    m = json.loads(data)
    m.pop("precision")
    m["goldens"]["files"] = sorted(m["goldens"]["files"])
    return m


def record(recording, model, scratch, tolerant):
    """Paths -> bytes of a set with its checkpoint and manifest; facts."""
    if not (scratch / recording.checkpoint).is_dir():
        child([str(model), str(scratch / recording.checkpoint)])
    inputs = recording.inputs(scratch)
    files = passes(recording, scratch, tolerant)
    checkpoint = tree(scratch / recording.checkpoint)
    facts = json.loads(files.pop("facts.json"))
    encoded = provenance.encode(recording.build(checkpoint, files, facts, inputs))
    contents = {f"{recording.checkpoint}/{n}": d for n, d in checkpoint.items()} | inputs
    contents |= {f"{recording.goldens}/{n}": d for n, d in files.items()}
    pin = f"{provenance.entry(encoded)['sha256']}  {Path(recording.manifest).name}\n".encode()
    return contents | {recording.manifest: encoded, recording.manifest + ".sha256": pin}, facts


def run(recordings, model, args):
    everything, bad = {}, []
    with tempfile.TemporaryDirectory(prefix="goldens-") as scratch:
        for recording in recordings:
            contents, facts = record(recording, model, Path(scratch), args.rounding)
            for line in recording.summary(facts):
                print(f"precision floor of {recording.name} {line} relative L2 from float64")
            everything |= contents
            if not args.accept:
                bad += compare(recording, contents, facts, args.rounding)
    if args.accept:
        print("\n".join(f"wrote {rel}" for rel in publish.files(ROOT, everything)) or "nothing to write")
    elif bad:
        raise Failure("goldens differ (--accept replaces them):\n  " + "\n  ".join(dict.fromkeys(bad)))
    else:
        print("check: every golden is reproduced")


def pin(checkpoint, model, through):
    """Prints pins for what a forward runs through."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / checkpoint
        child([str(model), str(folder)])
        seen = through(folder)
    json.dump(installed.reference(sorted(seen)), sys.stdout, indent=1, sort_keys=True)
    print()


def main(argv, recordings, model, through, doc):
    """The command line of a family's record.py. through(folder) names the modules that a forward runs through."""
    parser = argparse.ArgumentParser(prog="record.py", description=doc.split("\n")[0])
    group = parser.add_mutually_exclusive_group(required=True)
    for flag in ("--check", "--rounding", "--accept", "--pin"):
        group.add_argument(flag, action="store_true")
    args = parser.parse_args(argv)
    if args.pin and any(os.environ.get(k) != v for k, v in arithmetic.ENVIRONMENT.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], arithmetic.environment(os.environ))
    try:
        pin(recordings[0].checkpoint, model, through) if args.pin else run(recordings, model, args)
    except Failure as err:
        print(f"goldens: {err}", file=sys.stderr)
        return err.code
    return 0
