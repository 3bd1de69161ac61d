"""Records route statistics of pseudo-random routes, for route_test.go: from dictionaries, sets and fractions, one token
at a time.

usage: python record_routes.py > routes.json

The routes are recorded too: ids and weights, the latter float32 values.
"""
import json
import math
import random
import sys
from fractions import Fraction

import numpy as np


def draw(rng, tokens, experts, k):
    ids = [rng.sample(range(experts), k) for _ in range(tokens)]
    weights = [[float(np.float32(rng.random())) for _ in range(k)] for _ in range(tokens)]
    return ids, weights


def loads(ids, experts):
    count = dict.fromkeys(range(experts), 0)
    for token in ids:
        for e in token:
            count[e] += 1
    return [count[e] for e in range(experts)]


def distribution(ids, weights, experts):
    l = loads(ids, experts)
    total = sum(l)
    weighted = [Fraction(0)] * experts
    for token, w in zip(ids, weights):
        for e, x in zip(token, w):
            weighted[e] += Fraction(x)
    shares = np.array(l, dtype=np.float64) / max(total, 1)
    entropy = math.fsum(-p * math.log(p) for p in shares if p > 0) / math.log(experts)
    return {
        "loads": l,
        "weighted_loads": [float(w) for w in weighted],
        "used": sum(1 for n in l if n),
        "cv": float(np.std(l) / np.mean(l)) if total else 0.0,
        "entropy": entropy,
        "max_share": float(Fraction(max(l), max(total, 1))),
    }


def token(a, b):
    (ia, wa), (ib, wb) = a, b
    left, right = dict(zip(ia, map(Fraction, wa))), dict(zip(ib, map(Fraction, wb)))
    tv = sum(abs(left.get(e, 0) - right.get(e, 0)) for e in set(left) | set(right)) / 2
    return float(Fraction(len(set(ia) & set(ib)), len(set(ia) | set(ib)))), float(tv), set(ia) == set(ib)


def main():
    rng = random.Random(26)
    rows = []
    for tokens, experts, k in [(1, 2, 1), (1, 4, 4), (3, 4, 2), (7, 16, 6), (40, 16, 6), (5, 64, 6), (100, 64, 6), (30, 160, 6)]:
        a, b = draw(rng, tokens, experts, k), draw(rng, tokens, experts, k)
        for t in range(0, tokens, 3):  # the same set in another order
            b[0][t] = a[0][t][::-1]
        per_token = [token(x, y) for x, y in zip(zip(*a), zip(*b))]
        la, lb = loads(a[0], experts), loads(b[0], experts)
        load_tv = sum(abs(Fraction(x, sum(la)) - Fraction(y, sum(lb))) for x, y in zip(la, lb)) / 2
        rows.append({
            "experts": experts, "a": a, "b": b, "distribution": distribution(*a, experts),
            "jaccard": [j for j, _, _ in per_token], "tv": [t for _, t, _ in per_token], "same": [s for _, _, s in per_token],
            "load_tv": float(load_tv),
        })
    json.dump({"rows": rows}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
