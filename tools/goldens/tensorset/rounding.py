"""Whether two recordings of a set differ as another CPU's rounding makes them differ, and no more.

Both runs stray from float64 in directions of their own, so what is between them is bounded by a multiple of what the
recording is away from float64: the figures of its manifest. That holds for float32 and bfloat16 alike.
"""

import json

import numpy as np
from rows import apart

MULTIPLE = 4


def tensors(old, new, floor):
    """Why two versions of a case's tensors differ by more; None where they don't. floor: tensor name -> figure."""
    from safetensors.numpy import load

    a, b = load(old), load(new)
    if a.keys() != b.keys() or any(a[k].shape != b[k].shape for k in a):
        return "other tensors"
    for name in a:
        worst = apart(b[name], a[name]).max()
        if not worst <= MULTIPLE * max(floor[name], 2**-24):
            return f"{name}: {worst:.2e} apart"
    return None


def tied(row, other, floor):
    """Whether rounding may make `other` the largest of a row: no value moves by more than the whole row does."""
    row = np.asarray(row, dtype="f8")
    return row.max() - row[other] <= 2 * MULTIPLE * floor * np.linalg.norm(row)


def case(old, new, rows, floor):
    """Why two versions of a case's JSON differ by more than tied choices; rows are the old logits."""
    a, b = json.loads(old), json.loads(new)
    mine, theirs = a.pop("output_ids"), b.pop("output_ids")
    if a != b or len(mine) != len(theirs):
        return "another case"
    for i, (x, y) in enumerate(zip(mine, theirs)):
        if x != y and not tied(rows[i], y, floor):
            return f"output {i}: got {y}, want {x}, which is no tie"
    return None
