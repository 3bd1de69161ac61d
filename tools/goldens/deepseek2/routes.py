"""Routes of a recording: forced into a run, and held to the scores that chose them."""

import numpy as np
from failure import Failure
from rounding import MULTIPLE

# By how many times what a recorded logit is off every margin of a prompt must exceed it: of a clear one that two engines
# within their budgets choose alike, of one apart that two as precise as the recording do.
CLAIMS = {"clear": 2 * MULTIPLE, "apart": 2}
PAIRS = ((3, 11), (5, 6))  # experts of model.SAME with one row of the gate each


def of(tensors, layers):
    """Layer -> ids [positions, k] of recorded tensors."""
    names = {n: f"blocks.{n}.route_ids" for n in range(layers)}
    return {n: np.asarray(tensors[name]).astype(int) for n, name in names.items() if name in tensors}


def force(taps, model, ids):
    """Makes a model choose ids[layer][sequence, position], with the weights that its own scores give them."""
    import torch

    done = {}
    for layer, wanted in ids.items():

        def chosen(out, layer=layer, wanted=torch.tensor(wanted)):
            logits, _, own = out
            start, sequences = done.get(layer, 0), wanted.shape[0]
            n = len(own) // sequences
            done[layer] = start + n
            now = wanted[:, start : start + n].flatten(0, 1)
            weights = logits.softmax(-1).gather(1, now) * model.config.routed_scaling_factor
            return logits, weights, now

        taps.after(model.model.layers[layer].mlp.gate, chosen)


def excess(logits, ids):
    """By how much the best expert that wasn't chosen is above the worst one that was; not positive in a greedy choice."""
    logits = np.asarray(logits, dtype="f8")
    taken = np.zeros(logits.shape, bool)
    np.put_along_axis(taken, np.asarray(ids).astype(int), True, 1)
    return np.where(taken, -np.inf, logits).max(1) - np.where(taken, logits, np.inf).min(1)


def demand_chosen(exact, tensors, floor, forced):
    """Recorded routes are those of the recorded logits; forced ones may be off by what rounding moves a row of them."""
    for layer, ids in of(tensors, exact.cfg["num_hidden_layers"]).items():
        name = f"blocks.{layer}.router_logits"
        logits = np.asarray(tensors[name], dtype="f8")
        if exact.cfg["topk_method"] != "greedy":
            from float64_deepseek2 import softmax

            if (exact.choose(softmax(logits), lambda _place, value: value) != ids).any():
                raise Failure(f"blocks.{layer}.route_ids: not those that the recorded logits choose")
            continue
        allowed = 2 * MULTIPLE * floor[name] * np.linalg.norm(logits, axis=1) if forced else 0
        over = excess(logits, ids)
        if not (over <= allowed).all():
            raise Failure(f"blocks.{layer}.route_ids: an expert that was not chosen is {over.max():.2e} above one that was")


def margins(exact, logits):
    """In the logits, between the worst chosen expert and the best other one that could have been, of each row."""
    from float64_deepseek2 import softmax

    c = exact.cfg
    ids = exact.choose(softmax(logits), lambda _place, value: value)
    if c["topk_method"] == "greedy":
        return -excess(logits, ids)
    worth = logits.reshape(len(logits), c["n_group"], -1).max(-1)
    order, g = np.sort(worth)[:, ::-1], c["topk_group"]
    kept = np.repeat(worth >= order[:, g - 1, None], logits.shape[1] // c["n_group"], 1)
    return np.minimum(order[:, g - 1] - order[:, g], -excess(np.where(kept, logits, -np.inf), ids))


def demand_claim(claim, name, exact, free, tensors):
    """free: the float64 forward's tensors without forced routes. Refuses a prompt that isn't what it says it is."""
    import model

    layers = [n for n in range(exact.cfg["num_hidden_layers"]) if f"blocks.{n}.router_logits" in tensors]
    if claim in CLAIMS:
        for n in layers:
            logits = free[f"blocks.{n}.router_logits"]
            error = np.abs(np.asarray(tensors[f"blocks.{n}.router_logits"], dtype="f8") - logits).max(1)
            margin = margins(exact, logits)
            if not (margin > CLAIMS[claim] * error).all():
                at = int((margin / error).argmin())
                raise Failure(f"{name}: layer {n}, position {at}: a margin of {margin[at]:.2e} at an error of {error[at]:.2e}")
    if claim == "tied":
        ids = of(tensors, layers[-1] + 1)[model.SAME]
        halves = sum(int(((ids == a).any(1) != (ids == b).any(1)).sum()) for a, b in PAIRS)
        if halves == 0:
            raise Failure(f"{name}: no route of layer {model.SAME} has one of two equal experts")
        return halves
    return 0
