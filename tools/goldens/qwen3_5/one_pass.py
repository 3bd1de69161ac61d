#!/usr/bin/env python3
"""One recording of all prompts of the Qwen3.5 fixture in one dtype, into a folder of its own. Started by record.py, twice.

What is compared with float64 is also what is written. The delta rule of the float64 forward must agree with itself, step
by step and in chunks, before it is a yardstick.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tensorset"), str(HERE.parent)]

import guarded
import installed
import native
import pins
import places
import prompt
from failure import Failure

DTYPES = {"qwen3_5-seeded": "float32", "qwen3_5-bfloat16": "bfloat16"}


def load(folder, dtype):
    from transformers import Qwen3_5ForConditionalGeneration

    return native.load(Qwen3_5ForConditionalGeneration, folder, dtype)


def through(folder):
    """The source files of transformers that a forward runs through, in either dtype."""
    import torch

    native.settle()
    seen = set()
    with torch.no_grad():
        for dtype in DTYPES.values():
            model = load(folder, dtype)
            seen |= installed.executed(lambda model=model: prompt.decode(model, [2, 3], [4, 5]))
    return seen


def yardstick(model, ids):
    """Tensor name -> [positions, width] in float64."""
    import float64_qwen3_5
    from rows import apart

    both = []
    for rule in (float64_qwen3_5.chunked, float64_qwen3_5.stepwise):
        model.rule = rule
        both.append(model.forward(ids))
    worst = max(apart(both[0][name], both[1][name]).max() for name in both[1])
    if not worst <= 1e-10:
        raise Failure(f"the float64 delta rule differs by {worst:.2e} between chunks and steps")
    return both[1]


def record(model, exact_model, entry, dtype):
    """The case's JSON, its tensors, their precision, and what the weakest planted fault shows."""
    import power
    import rows
    import torch

    ids, forced = prompt.token_ids(entry, model.config.text_config.vocab_size)
    taps = places.tap(model)
    try:
        logits = prompt.decode(model, ids, forced)
        seen = taps.at(entry["positions"], len(ids) + len(forced) - 1)
    finally:
        taps.close()
    seen["logits"] = torch.stack(logits).float()
    tensors = {name: seen[name].contiguous() for name in places.names(model.config.text_config.layer_types, dtype)}
    exact = yardstick(exact_model, ids + forced[:-1])
    floor = rows.precision(tensors, exact, prompt.places(entry))
    shown = power.demand(exact_model, ids + forced[:-1], entry, exact, floor) if dtype == "float32" else None
    return prompt.case(entry, ids, forced, logits), tensors, floor, shown


def run(root, checkpoint, name, folder):
    want = pins.load(HERE / "pins.json")
    got = installed.reference(want["modules"])
    pins.demand(got, want)
    import float64_qwen3_5
    import torch
    from safetensors.torch import save

    native.settle()
    dtype = DTYPES[name]
    model = load(root / checkpoint, dtype)
    exact = float64_qwen3_5.Model(root / checkpoint)
    precision = {}
    with torch.no_grad():
        pins.unpinned(installed.executed(lambda: prompt.decode(model, [2, 3], [4, 5])), want)
        for entry in json.loads((HERE / "prompts.json").read_text(encoding="utf-8")):
            case, tensors, floor, shown = record(model, exact, entry, dtype)
            precision[entry["name"]] = floor
            (folder / f"{entry['name']}.safetensors").write_bytes(save(tensors))
            (folder / f"{entry['name']}.json").write_text(json.dumps(case) + "\n", encoding="utf-8")
            weakest = f"; the weakest fault shows by {shown[1]:.2e} ({shown[0]})" if shown else ""
            print(f"recorded {entry['name']}: float64 is {max(floor.values()):.2e} away at most{weakest}", file=sys.stderr)
    facts = {"cases": list(precision), "reference": got, "arithmetic": native.describe(dtype), "precision": precision}
    (folder / "facts.json").write_text(json.dumps(facts, allow_nan=False), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(guarded.run(lambda: run(Path(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4]))))
