#!/usr/bin/env python3
"""One recording of the gates alone, into a folder of its own. Started by record.py, twice.

Rows drawn from a seed go through the gates' own classes; a case has no tokens, its positions are the rows' numbers.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tensorset"), str(HERE.parent)]

import gates
import guarded
import installed
import native
import pins
from failure import Failure

ROWS, SEED = 40, 20275
WHY = {
    "v2_groups": "softmax over all experts, a group as good as its best one, others masked with 0, weights scaled by 16",
    "v3": "sigmoids with a bias below zero, a group as good as its two best, others masked with -inf, weights normalised",
}


def load(folder, name):
    import torch
    from safetensors.torch import load_file
    from transformers.models.deepseek_v2 import configuration_deepseek_v2, modeling_deepseek_v2
    from transformers.models.deepseek_v3 import configuration_deepseek_v3, modeling_deepseek_v3

    config = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    if name == "v3":
        gate = modeling_deepseek_v3.DeepseekV3TopkRouter(configuration_deepseek_v3.DeepseekV3Config(**config))
    else:
        gate = modeling_deepseek_v2.DeepseekV2TopkRouter(configuration_deepseek_v2.DeepseekV2Config(**config))
    gate.load_state_dict({k: v.to(torch.float32) for k, v in load_file(folder / f"{name}.safetensors").items()})
    return config, gate.eval()


def rows():
    import numpy as np
    import torch

    drawn = np.random.default_rng(SEED).standard_normal((ROWS, gates.HIDDEN))
    return torch.tensor(drawn).to(torch.bfloat16).float()


def through(folder):
    import torch

    with torch.no_grad():
        return set().union(*(installed.executed(lambda gate=load(folder, n)[1]: gate(rows())) for n in gates.CONFIGS))


def record(config, gate, x):
    """Tensors, and their precision."""
    import numpy as np
    import places
    import rows as distances

    logits, ids, weights = places.ordered(*gate(x))
    tensors = {"hidden": x, "router_logits": logits, "route_ids": ids.float(), "route_weights": weights}
    w = {k: v.double().numpy() for k, v in gate.state_dict().items()}
    exact = x.double().numpy() @ w["weight"].T
    by, scores = gates.selection(config, exact, w.get("e_score_correction_bias"))
    right, margin = gates.choose(config, by, -np.inf)
    if (right != ids.numpy()).any():
        raise Failure("route_ids: the class chooses otherwise than the float64 formula")
    want = {"hidden": x, "router_logits": exact, "route_ids": right, "route_weights": gates.weights(config, scores, right)}
    return tensors, distances.precision(tensors, want, lambda _: slice(None)), by, margin


def demand_power(name, config, tensors, by, margin):
    """Refuses rows that wouldn't show another mask, groups left out, or that lie near a tie."""
    import numpy as np

    others = {"groups left out": gates.best(by, config["num_experts_per_tok"])}
    if name == "v3":
        plain = tensors["router_logits"].double().sigmoid().numpy()
        others["mask 0 for -inf"] = gates.choose(config, by, 0.0)[0]
        others["bias left out"] = gates.choose(config, plain, -np.inf)[0]
    ids = tensors["route_ids"].numpy()
    changed = {what: int((other != ids).any(1).sum()) for what, other in others.items()}
    weak = [what for what, n in changed.items() if n < ROWS // 4]
    if weak or not margin.min() > 1e-4:
        raise Failure(f"{name}: {weak} show in too few rows, or the smallest margin {margin.min():.1e} is near a tie")
    return changed


def run(root, checkpoint, folder):
    want = pins.load(HERE / "pins.json")
    got = installed.reference(want["modules"])
    pins.demand(got, want)
    import torch
    from safetensors.torch import save

    native.settle()
    precision = {}
    with torch.no_grad():
        pins.unpinned(through(root / checkpoint), want)
        for name in gates.CONFIGS:
            config, gate = load(root / checkpoint, name)
            tensors, precision[name], by, margin = record(config, gate, rows())
            changed = demand_power(name, config, tensors, by, margin)
            case = {"token_ids": [], "forced_ids": [], "output_ids": [], "positions": list(range(ROWS)), "why": WHY[name]}
            (folder / f"{name}.safetensors").write_bytes(save({k: v.contiguous() for k, v in tensors.items()}))
            (folder / f"{name}.json").write_text(json.dumps(case) + "\n", encoding="utf-8")
            shown = f"smallest margin {margin.min():.1e}; of {ROWS} routes change with {changed}"
            print(f"recorded gate {name}: {shown}", file=sys.stderr)
    facts = {"cases": list(precision), "reference": got, "arithmetic": native.describe("float32"), "precision": precision}
    (folder / "facts.json").write_text(json.dumps(facts, allow_nan=False), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(guarded.run(lambda: run(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[4]))))
