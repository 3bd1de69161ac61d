"""Records what numpy makes of pseudo-random tensors, for tensor_numpy_test.go.

usage: python record_numpy.py > numpy.json

The tensors are not recorded: both sides draw them from the same generator.
"""
import json
import sys

import numpy as np


def draw(seed, n):
    """The generator of the test: xorshift64*, scaled by powers of two, exactly representable."""
    out = np.empty(n, dtype=np.float32)
    s = seed
    for i in range(n):
        s ^= s >> 12
        s = (s ^ (s << 25)) & 0xFFFFFFFFFFFFFFFF
        s ^= s >> 27
        v = (s * 0x2545F4914F6CDD1D) & 0xFFFFFFFFFFFFFFFF
        mantissa = (v >> 40) - (1 << 23)  # 24 bits with a sign
        out[i] = np.float32(mantissa) * np.float32(2.0 ** (-23 - int((v >> 8) & 7)))
    return out


def main():
    rows = []
    lengths = list(range(1, 40)) + [63, 64, 65, 120, 127, 128, 129, 135, 136, 137, 143, 144, 255, 256, 257, 264, 271,
                                    511, 513, 1000, 1023, 1024, 1025, 2048, 4096, 4099, 8192, 12345, 65536, 65543]
    for n in lengths:
        ref = draw(2 * n + 1, n)
        cand = (ref + np.float32(2.0 ** -6) * draw(2 * n + 2, n)).astype(np.float32)
        diff = ref - cand
        diff64, ref64 = diff.astype(np.float64), ref.astype(np.float64)
        rows.append({
            "n": n,
            "max_abs": float(np.abs(diff).max()), "max_at": int(np.abs(diff).argmax()),
            "mean_abs": float(np.abs(diff).mean()), "mse": float(np.mean(diff ** 2)),
            "sum_sq_diff": float((diff64 * diff64).sum()), "sum_sq_ref": float((ref64 * ref64).sum()),
            "ref_mean_abs": float(np.abs(ref).mean()), "cand_mean_abs": float(np.abs(cand).mean()),
        })
    json.dump({"numpy": np.__version__, "rows": rows}, sys.stdout, indent=0)
    print()


if __name__ == "__main__":
    main()
