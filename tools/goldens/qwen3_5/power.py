"""That a prompt has power: each fault that the suite plants must change what is recorded, far above the recording's error.

Faults are planted into the float64 forward, one layer at a time, and looked for in what that layer's mixer puts out.
"""

import functools

import float64_qwen3_5
import numpy as np
from failure import Failure
from rows import apart

# A float32 engine gets 4 times the recording's error as its budget, and a fault must miss that tenfold.
MULTIPLE = 40


def shifted(start, windows):
    """What a convolution sees when decode steps from start on find a state that is one position behind."""
    out = windows.copy()
    out[start:, :, :-1] = windows[start - 1 : -1, :, :-1]
    return out


def faults(start):
    """Name -> (place in the float64 forward, its replacement); start is the first decode position."""
    stale = functools.partial(float64_qwen3_5.stepwise, stale=(start,))
    return {
        "recurrent state stale": ("rule", lambda _: stale),
        "convolution state off by one": ("conv_windows", functools.partial(shifted, start)),
        "beta of another head": ("beta", lambda x: np.roll(x, 1, axis=1)),
        "attention gate missing": ("attention_gate", np.ones_like),
        "gate of the norm missing": ("linear_gate", np.ones_like),
        "decay missing": ("decay", np.ones_like),
    }


def demand(model, ids, entry, exact, floor):
    """Refuses a prompt that wouldn't show one of them; returns the weakest fault and by how much it shows."""
    weakest = ("none", np.inf)
    for name, (place, change) in faults(entry["tokens"]).items():
        for layer, kind in enumerate(model.cfg["layer_types"]):
            if (kind == "full_attention") != (place == "attention_gate"):
                continue

            def fault(at, n, value, place=place, layer=layer, change=change):
                return change(value) if (at, n) == (place, layer) else value

            tensor = f"blocks.{layer}.attn_out"
            at = entry["positions"]
            seen = apart(model.forward(ids, fault)[tensor][at], exact[tensor][at]).max()
            if not seen >= MULTIPLE * floor[tensor]:
                raise Failure(f"{entry['name']}: {name} in layer {layer} changes {tensor} by {seen:.2e} only")
            weakest = min(weakest, (f"{name}, layer {layer}", float(seen)), key=lambda x: x[1])
    return weakest
