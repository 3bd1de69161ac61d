"""That a prompt has power: each fault that the suite plants must change what is recorded, far above the recording's error.

Faults are planted into the float64 forward, one layer at a time, with the recorded routes forced: what a fault changes
is then no flip. They are looked for in the stream behind that layer.
"""

import numpy as np
from failure import Failure
from float64_deepseek2 import largest, softmax
from rows import apart

# A float32 engine gets 4 times the recording's error as its budget, and a fault must miss that tenfold.
MULTIPLE = 40


def stale(at, rows):
    """A cache that has the row before in the place of this one."""
    out = rows.copy()
    out[at] = rows[at - 1]
    return out


def one_fewer(weights):
    out = weights.copy()
    np.put_along_axis(out, weights.argmin(1)[:, None], 0.0, 1)
    return out


def plain(model):
    rope = model.cfg["rope_parameters"]
    i = np.arange(model.cfg["qk_rope_head_dim"] // 2)
    return rope["rope_theta"] ** (-i / len(i))


def attention_faults(model, at):
    return {
        "mscale missing in the softmax scale": ("score_factor", lambda _: 1.0),
        "mscale missing in the rotary tables": ("table_factor", lambda _: 1.0),
        "YaRN off": ("speeds", lambda _: plain(model)),
        "latent cache row stale": ("latent", lambda x: stale(at, x)),
    }


def router_faults():
    return {
        "softmax after top-k": ("route_weights", lambda x: (softmax(x[1]), x[1])),
        "one expert fewer": ("route_weights", lambda x: (one_fewer(x[0]), x[1])),
        "shared experts dropped": ("shared", np.zeros_like),
        "routed experts dropped": ("routed", np.zeros_like),
        "experts in another order": ("expert", lambda e: (e + 1) % 16),
    }


def demand(model, run, layers, entry, exact, floor):
    """run(fault) gives the forward's tensors. Returns the weakest fault and by how much it shows."""
    weakest, at = ("none", np.inf), entry["positions"]
    for layer in layers:
        routed = layer >= model.cfg["first_k_dense_replace"]
        # The row before the last one recorded, which the last one sees.
        faults = attention_faults(model, at[-2]) | (router_faults() if routed else {})
        if "start" in entry:
            faults["padding unmasked"] = ("padding", None)
        for name, (place, change) in faults.items():
            tensor = f"blocks.{layer}.resid_post"

            def fault(where, n, value, place=place, layer=layer, change=change):
                return change(value) if (where, n) == (place, layer) else value

            seen = apart(run(None if place == "padding" else fault)[tensor][at], exact[tensor][at]).max()
            if not seen >= MULTIPLE * floor[tensor]:
                raise Failure(f"{entry['name']}: {name} in layer {layer} changes {tensor} by {seen:.2e} only")
            weakest = min(weakest, (f"{name}, layer {layer}", float(seen)), key=lambda x: x[1])
    return weakest


def demand_rounded_router(model, exact, entry):
    """A router whose logits are rounded to bfloat16 must choose otherwise somewhere."""
    import torch

    changed = 0
    for n in range(model.cfg["num_hidden_layers"]):
        logits = exact.get(f"blocks.{n}.router_logits")
        if logits is not None:
            rounded = torch.tensor(logits).to(torch.bfloat16).double().numpy()
            k = model.cfg["num_experts_per_tok"]
            changed += int((largest(rounded, k) != largest(logits, k)).any(1).sum())
    if not changed:
        raise Failure(f"{entry['name']}: a router in bfloat16 chooses as one in float32 does")
    return changed
