"""What a recording would do to the goldens that are there: new, changed, orphaned, and how large each change is.

Works on bytes, needs neither torch nor numpy.
"""

import json
import math
from dataclasses import dataclass, field

import dumps
from failure import Failure


@dataclass
class Plan:
    """Names inside the golden folder, in order; `size` describes each changed file."""

    same: list = field(default_factory=list)
    new: list = field(default_factory=list)
    changed: list = field(default_factory=list)
    orphans: list = field(default_factory=list)
    size: dict = field(default_factory=dict)

    def clean(self):
        return not (self.new or self.changed or self.orphans)


def plan(old, new):
    """old and new map names to bytes."""
    p = Plan(orphans=sorted(old.keys() - new.keys()))
    for name in sorted(new):
        if name not in old:
            p.new.append(name)
        elif old[name] == new[name]:
            p.same.append(name)
        else:
            p.changed.append(name)
            p.size[name] = size(name, old[name], new[name])
    return p


def size(name, old, new):
    """One line on how far apart two versions of a file are."""
    try:
        return _rows(name, old, new) if name.endswith(".bin") else _keys(old, new)
    except (Failure, ValueError) as err:
        return f"the one that is there can't be read ({err}); {len(old)} bytes become {len(new)}"


def _rows(name, old, new):
    a, b = dumps.read(old, name), dumps.read(new, name)
    if [len(r) for r in a] != [len(r) for r in b]:
        return f"{len(a)} rows of {len(a[0]) if a else 0} become {len(b)} of {len(b[0]) if b else 0}"
    far = {i: relative(x, y) for i, (x, y) in enumerate(zip(a, b)) if x.tobytes() != y.tobytes()}
    if not far:
        return f"0 of {len(a)} rows; the header differs"
    worst = max(far, key=lambda i: (math.isnan(far[i]), far[i]))
    listed = ", ".join(f"{i}: {e:.2g}" for i, e in far.items())
    return f"{len(far)} of {len(a)} rows, at most {far[worst]:.2g} relative L2 (row {worst}); by row {listed}"


def relative(old, new):
    """|new - old| / |old|; NaN where a value is not finite, infinite where the old row is zero."""
    error = math.sqrt(math.fsum((y - x) ** 2 for x, y in zip(old, new)))
    norm = math.sqrt(math.fsum(x * x for x in old))
    return error / norm if norm else math.inf


def _keys(old, new):
    a, b = json.loads(old), json.loads(new)
    if not isinstance(a, dict) or not isinstance(b, dict):
        return f"{len(old)} bytes become {len(new)}"
    parts = []
    for key in sorted(a.keys() | b.keys()):
        x, y = a.get(key), b.get(key)
        if x == y:
            continue
        if isinstance(x, list) and isinstance(y, list):
            differ = sum(p != q for p, q in zip(x, y)) + abs(len(x) - len(y))
            parts.append(f"{key}: {differ} of {max(len(x), len(y))} differ")
        else:
            parts.append(key)
    return "; ".join(parts) or "only the spelling of the JSON"


def lines(p):
    """The plan as text, every file named."""
    out = [f"orphan  {n}: no prompt makes it" for n in p.orphans]
    out += [f"missing {n}" for n in p.new]
    out += [f"changed {n}: {p.size[n]}" for n in p.changed]
    out.append(f"{len(p.same)} files are the same byte for byte")
    return out


def case_of(name):
    """The case that a file of the folder belongs to; None for engine.json."""
    return None if name == "engine.json" else name.split(".")[0]


def demand(p, accept=False, create=(), create_all=False):
    """Refuses what the caller didn't ask for. Orphans are refused whatever was asked: remove them by hand."""
    why = []
    if p.orphans:
        why.append("orphaned (remove by hand): " + ", ".join(p.orphans))
    unasked = [n for n in p.new if not (create_all or case_of(n) in create or (case_of(n) is None and create))]
    if unasked:
        why.append("missing (--create NAME or --all-new makes them): " + ", ".join(unasked))
    idle = sorted(set(create) - {case_of(n) for n in p.new})
    if idle:
        why.append("--create of what isn't missing: " + ", ".join(idle))
    if p.changed and not accept:
        why.append("changed (--accept replaces them): " + ", ".join(p.changed))
    if why:
        raise Failure("goldens not written:\n  " + "\n  ".join(why))
