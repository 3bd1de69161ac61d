"""Prompts drawn from a seed, and their run: one batched prefill, then decode steps along given tokens.

A random model left to itself would repeat one token forever, so what follows the prompt is given too; the last of it is
not run. What the model would choose in place of each is recorded beside.
"""

import numpy as np


def token_ids(entry, vocabulary):
    """The prompt, and the tokens behind it."""
    rng = np.random.default_rng(entry["seed"])
    draw = [[int(i) for i in rng.integers(0, vocabulary, n)] for n in (entry["tokens"], entry["new"])]
    return draw[0], draw[1]


def decode(model, ids, forced):
    """The logit row before each forced token."""
    import torch

    out = model(input_ids=torch.tensor([ids]), use_cache=True)
    rows = [out.logits[0, -1].clone()]
    for token in forced[:-1]:
        out = model(input_ids=torch.tensor([[token]]), past_key_values=out.past_key_values, use_cache=True)
        rows.append(out.logits[0, -1].clone())
    return rows


def padded(model, prompts, pad):
    """The last logit row of each prompt, run as one batch: padded on the left, the padding masked, positions as they lie."""
    import torch

    longest = max(map(len, prompts))
    rows = [[pad] * (longest - len(ids)) + ids for ids in prompts]
    mask = [[0] * (longest - len(ids)) + [1] * len(ids) for ids in prompts]
    out = model(input_ids=torch.tensor(rows), attention_mask=torch.tensor(mask), use_cache=False)
    return out.logits[:, -1].clone()


def case(entry, ids, forced, rows):
    """The case's JSON; the lowest index wins a tie."""
    chosen = [int(np.argmax(r.float().numpy())) for r in rows]
    return {"token_ids": ids, "forced_ids": forced, "output_ids": chosen, "positions": entry["positions"], "why": entry["why"]}


def places(entry):
    """Tensor name -> the positions of its rows."""
    first = entry["tokens"] - 1
    return lambda name: list(range(first, first + entry["new"])) if name == "logits" else entry["positions"]
