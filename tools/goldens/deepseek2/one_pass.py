#!/usr/bin/env python3
"""One recording of all prompts of a DeepSeek-V2 fixture in one dtype, into a folder of its own. Started by record.py, twice.

The class of transformers leaves mscale^2 out of the softmax scale; the model's official file has it, and so have these
goldens: the factor is multiplied in here. A run that is only compared with recorded goldens makes the choices of routes
that they made, if its own scores allow them: another CPU rounds a tie to the other side, and all behind it moves.
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
from failure import Untrusted
from taps import Taps

DTYPES = {
    "deepseek2-seeded": "float32",
    "deepseek2-bfloat16": "bfloat16",
    "deepseek2-grouped": "float32",
}
EXPERTS = "grouped_mm"  # adds up in float32 and rounds once, as the official file does
CHANGED = "softmax scale times mscale^2, mscale = 0.1 * mscale_all_dim * ln(factor) + 1, as in the official file"
PAD = 0


def load(folder, dtype):
    from float64_deepseek2 import mscale
    from transformers import DeepseekV2ForCausalLM

    model = native.load(DeepseekV2ForCausalLM, folder, dtype, experts_implementation=EXPERTS)
    c = model.config
    plain = (c.qk_nope_head_dim + c.qk_rope_head_dim) ** -0.5
    factor = float(mscale(c.rope_parameters["factor"], c.rope_parameters["mscale_all_dim"])) ** 2
    for layer in model.model.layers:
        if layer.self_attn.scaling != plain:
            raise Untrusted(f"softmax scale: got {layer.self_attn.scaling}, want {plain}, which lacks mscale^2")
        layer.self_attn.scaling *= factor
    return model


def through(folder):
    """The source files of transformers that a forward runs through, in either dtype, in a batch and in steps."""
    import torch

    native.settle()
    seen = set()
    with torch.no_grad():
        for dtype in ("float32", "bfloat16"):
            model = load(folder, dtype)
            seen |= installed.executed(lambda model=model: touch(model))
    return seen


def touch(model):
    prompt.decode(model, [3, 4], [5, 6])
    prompt.padded(model, [[3, 4], [5]], PAD)


def batches(entries):
    """Entries that run together, in order: a batch is padded to its longest, and start is a prompt's first position."""
    out = {}
    for e in entries:
        out.setdefault(e.get("batch", e["name"]), []).append(dict(e))
    for together in out.values():
        longest = max(e["tokens"] for e in together)
        for e in together:
            if longest > e["tokens"]:
                e["start"] = longest - e["tokens"]
    return list(out.values())


def run_batch(model, together, recorded):
    """Per entry its ids and what follows them, its logits, and its tensors."""
    import numpy as np
    import routes
    import torch

    drawn = [prompt.token_ids(e, model.config.vocab_size) for e in together]
    taps = Taps()
    try:
        if recorded is not None:
            routes.force(taps, model, recorded_routes(recorded, together, model.config.num_hidden_layers))
        places.tap(model, taps)
        if len(together) == 1:
            logits = [prompt.decode(model, *drawn[0])]
        else:
            logits = [[row] for row in prompt.padded(model, [ids for ids, _ in drawn], PAD)]
    finally:
        taps.close()
    out = []
    for i, (e, (ids, forced), rows) in enumerate(zip(together, drawn, logits, strict=True)):
        start, count = e.get("start", 0), len(ids) + len(forced) - 1
        seen = {}
        for name, all_rows in taps.at(range(start + count), start + count, i).items():
            at = range(count) if places.everywhere(name) else e["positions"]
            seen[name] = all_rows[np.array(at) + start].contiguous()
        seen["logits"] = torch.stack(rows).float()
        out.append((ids, forced, rows, seen))
    return out


def recorded_routes(folder, together, layers):
    """Layer -> ids [sequences, positions, k] of recorded cases; a pad goes wherever, its row is nobody's."""
    import numpy as np
    import routes
    from safetensors.numpy import load_file

    out = {}
    for e in together:
        for layer, ids in routes.of(load_file(folder / f"{e['name']}.safetensors"), layers).items():
            pad = np.tile(np.arange(ids.shape[1]), (e.get("start", 0), 1))
            out.setdefault(layer, []).append(np.concatenate([pad, ids]))
    return {layer: np.stack(ids) for layer, ids in out.items()}


def judge(exact, e, ids, tensors, dtype, forced):
    """The precision of a case's tensors; a line on what it shows."""
    import power
    import routes
    import rows

    chosen = routes.of(tensors, exact.cfg["num_hidden_layers"])
    start = e.get("start", 0)

    def again(fault=None):
        if fault is None:
            return exact.forward(ids, chosen, start)
        return exact.forward(ids, chosen, start, fault)

    want, count = again(), len(ids)
    at = prompt.places(e)
    floor = rows.precision(tensors, want, lambda name: list(range(count)) if places.everywhere(name) else at(name))
    routes.demand_chosen(exact, tensors, floor, forced)
    if dtype == "bfloat16":
        free = exact.forward(ids, None, start)
        other = sum((free[f"blocks.{n}.route_ids"] != r).any(1).sum() for n, r in chosen.items())
        return floor, f"; {other} of {count * len(chosen)} routes differ from float64's"
    ties = routes.demand_claim(e.get("claim"), e["name"], exact, exact.forward(ids, None, start), tensors)

    def faulty(fault):
        return unmasked(exact, ids, chosen, start) if fault is None else again(fault)

    layers = places.detail(exact.cfg["num_hidden_layers"])
    weakest = power.demand(exact, faulty, layers, e, want, floor)
    rounded = power.demand_rounded_router(exact, want, e) if exact.cfg["topk_method"] == "greedy" else 0
    shown = f"; the weakest fault shows by {weakest[1]:.2e} ({weakest[0]})"
    return floor, f"{shown}; {ties} exact ties; a router in bfloat16 flips {rounded} routes"


def unmasked(exact, ids, chosen, start):
    """The forward where the pads before the prompt can be seen."""
    import numpy as np

    pads = {n: np.concatenate([np.tile(np.arange(r.shape[1]), (start, 1)), r]) for n, r in chosen.items()}
    return {name: rows[start:] for name, rows in exact.forward([PAD] * start + ids, pads).items()}


def run(root, checkpoint, name, folder, recorded):
    want = pins.load(HERE / "pins.json")
    got = installed.reference(want["modules"])
    pins.demand(got, want)
    import float64_deepseek2
    import torch
    from safetensors.torch import save

    native.settle()
    dtype = DTYPES[name]
    model = load(root / checkpoint, dtype)
    exact = float64_deepseek2.Model(root / checkpoint)
    prompts = json.loads((HERE / "prompts.json").read_text(encoding="utf-8"))[Path(checkpoint).name]
    precision = {}
    with torch.no_grad():
        pins.unpinned(installed.executed(lambda: touch(model)), want)
        for together in batches(prompts):
            for e, (ids, forced, rows, seen) in zip(together, run_batch(model, together, recorded)):
                tensors = {n: seen[n] for n in places.names(model.config, dtype)}
                floor, shown = judge(exact, e, ids + forced[:-1], tensors, dtype, recorded is not None)
                precision[e["name"]] = floor
                case = prompt.case(e, ids, forced, rows) | {k: e[k] for k in ("start", "batch") if k in e}
                (folder / f"{e['name']}.safetensors").write_bytes(save(tensors))
                (folder / f"{e['name']}.json").write_text(json.dumps(case) + "\n", encoding="utf-8")
                print(f"recorded {name} {e['name']}: float64 is {max(floor.values()):.2e} away at most{shown}", file=sys.stderr)
    arithmetic = native.describe(dtype, experts=EXPERTS, changed=[CHANGED])
    facts = {"cases": list(precision), "reference": got, "arithmetic": arithmetic, "precision": precision}
    (folder / "facts.json").write_text(json.dumps(facts, allow_nan=False), encoding="utf-8")


def main(argv):
    recorded = Path(argv[5]) if len(argv) > 5 else None
    return guarded.run(lambda: run(Path(argv[1]), argv[2], argv[3], Path(argv[4]), recorded))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
