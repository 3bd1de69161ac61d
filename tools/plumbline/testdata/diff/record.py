"""Records what tq_c0_diff.py says of small made-up dumps, for diff_script_test.go.

usage: python record.py PATH/TO/tq_c0_diff.py

Needs numpy. The dumps aren't kept: the test writes the same ones, by the same
formula and the same changes. Of each case CASE.stdout.txt and CASE.summary.md,
without the title, are kept, and the SHA-256 of its CSV in csv.sha256.
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

STEPS = [1, 5, 10, 15, 20, 25, 30]
OPS = ["q_normed", "k_normed", "v_normed", "sdpa_out"]
GLOBAL = {5, 11, 17, 23, 29}


def count(layer, op):
    if op in ("q_normed", "sdpa_out"):
        return 8192 if layer in GLOBAL else 4096
    return 1024 if layer in GLOBAL else 2048


def tensors(layer, step, op, ref_exp, diff_exp):
    i = np.arange(count(layer, op), dtype=np.int64)
    o = OPS.index(op)
    ref = ((i * 37 + layer * 11 + step * 5 + o * 3) % 257 - 128) * 2.0 ** ref_exp
    diff = ((i * 13 + layer + step) % 17 - 8) * 2.0 ** diff_exp
    return ref.astype("<f4"), (ref + diff).astype("<f4")


def name(layer, step, op):
    return f"hf2q_{op}_layer{layer:02d}_pos{22 + step - 1:02d}.bin"


def write(root, ref_exp, diff_exp):
    for side in ("ref", "cand"):
        os.makedirs(os.path.join(root, side))
    for layer in range(30):
        for step in STEPS:
            for op in OPS:
                for side, t in zip(("ref", "cand"), tensors(layer, step, op, ref_exp, diff_exp)):
                    t.tofile(os.path.join(root, side, name(layer, step, op)))


class Change:
    def __init__(self, root):
        self.root = root

    def path(self, side, layer, step, op):
        return os.path.join(self.root, side, name(layer, step, op))

    def remove(self, *at):
        os.remove(self.path(*at))

    def size(self, n, *at):
        with open(self.path(*at), "r+b") as f:
            f.truncate(n)

    def value(self, index, v, *at):
        t = np.fromfile(self.path(*at), dtype="<f4")
        t[index] = v
        t.tofile(self.path(*at))

    def zero(self, *at):
        n = os.path.getsize(self.path(*at))
        with open(self.path(*at), "wb") as f:
            f.write(bytes(n))


def missing_five(c):
    for layer in range(5):
        c.remove("cand", layer, 10, "k_normed")


def sizes(c):
    c.size(16380, "cand", 1, 5, "q_normed")
    c.size(16388, "ref", 2, 5, "sdpa_out")
    c.remove("cand", 2, 5, "sdpa_out")


def last_missing(c):
    for layer in range(30):
        c.remove("cand", layer, 30, "sdpa_out")


def layer_missing(c):
    for step in STEPS:
        c.remove("ref", 7, step, "sdpa_out")


def empty(c):
    for side in ("ref", "cand"):
        for f in os.listdir(os.path.join(c.root, side)):
            os.remove(os.path.join(c.root, side, f))


# case: exponents of the reference's and the difference's unit, change
CASES = {
    "floor": (-7, -16, lambda c: None),
    "drilldown": (-16, -15, lambda c: None),
    "ambiguous": (-18, -14, lambda c: None),
    "breach": (-7, -12, lambda c: None),
    "single-op": (-7, -16, lambda c: c.value(100, 9.5, "cand", 15, 20, "sdpa_out")),
    "late": (-7, -16, lambda c: c.value(100, 9.5, "cand", 16, 20, "k_normed")),
    "missing-five": (-7, -16, missing_five),
    "sizes": (-7, -16, sizes),
    "last-step-missing": (-16, -15, last_missing),
    "layer-missing": (-7, -16, layer_missing),
    "nan-later": (-7, -16, lambda c: c.value(5, np.nan, "cand", 3, 15, "sdpa_out")),
    "nan-first": (-7, -16, lambda c: c.value(5, np.nan, "cand", 3, 1, "sdpa_out")),
    "nan-in-reference": (-7, -16, lambda c: c.value(5, np.nan, "ref", 3, 15, "sdpa_out")),
    "inf-in-both": (-7, -16, lambda c: (c.value(5, np.inf, "cand", 3, 15, "sdpa_out"), c.value(5, np.inf, "ref", 3, 15, "sdpa_out"))),
    "zero-reference": (-18, -20, lambda c: c.zero("ref", 4, 10, "sdpa_out")),
    "empty": (-7, -16, empty),
}


def main():
    script = open(sys.argv[1], encoding="utf-8").read()
    here = os.path.dirname(os.path.abspath(__file__))
    sums = []
    for case, (ref_exp, diff_exp, change) in CASES.items():
        root = tempfile.mkdtemp()
        write(root, ref_exp, diff_exp)
        change(Change(root))
        run = script
        for constant, value in (("DENSE_ROOT", "ref"), ("TQ_ROOT", "cand"), ("CSV_OUT", "raw.csv"), ("SUMMARY_OUT", "summary.md")):
            run, n = re.subn(rf"(?m)^{constant}\s*=.*$", f"{constant} = {value!r}", run)
            assert n == 1, constant
        path = os.path.join(root, "script.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(run)
        done = subprocess.run([sys.executable, path], cwd=root, capture_output=True, text=True)
        with open(os.path.join(here, case + ".stdout.txt"), "w", encoding="utf-8") as f:
            f.write(done.stdout)
        with open(os.path.join(root, "summary.md"), encoding="utf-8") as f:
            lines = f.readlines()[3:]  # without title and heading
        with open(os.path.join(here, case + ".summary.md"), "w", encoding="utf-8") as f:
            f.writelines(lines)
        with open(os.path.join(root, "raw.csv"), "rb") as f:
            sums.append(f"{hashlib.sha256(f.read()).hexdigest()}  {case}\n")
        print(case, "exit", done.returncode, done.stderr.strip().splitlines()[-1:] or "")
        shutil.rmtree(root)
    with open(os.path.join(here, "csv.sha256"), "w", encoding="utf-8") as f:
        f.writelines(sums)


if __name__ == "__main__":
    main()
