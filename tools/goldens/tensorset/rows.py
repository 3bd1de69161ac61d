"""Distances between rows, in float64."""

import numpy as np


def apart(got, want):
    """Relative L2 of each row of got from the same row of want."""
    got, want = np.asarray(got, dtype="f8"), np.asarray(want, dtype="f8")
    return np.linalg.norm(got - want, axis=-1) / np.linalg.norm(want, axis=-1)


def precision(tensors, exact, at):
    """Tensor name -> relative L2 of its worst row from a float64 run's rows at the positions at(name); three digits."""
    return {name: float(f"{apart(got, exact[name][at(name)]).max():.3g}") for name, got in tensors.items()}
