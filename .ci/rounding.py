"""Says whether what `make goldens` found changed is the rounding of another CPU, and nothing else.

    python .ci/rounding.py OUTPUT MANIFEST    exit code 0 if it is

Another CPU model adds in another order, although the vector extensions are
pinned: the recorded bits differ, within float32 rounding. Tokens, texts, the
checkpoint, the prompts, the recorder and what it runs on must be as they were.
"""

import json
import re
import sys

# Two float32 runs stray from float64 in independent directions: the factor is
# the one that the reference engine is held to its goldens with.
MULTIPLE = 4

DUMP = re.compile(r"changed (\S+)\.(layers|logits)\.bin: \d+ of \d+ rows, at most (\S+) relative L2 ")
FOLLOWS = re.compile(r"  (precision\.cases\.|goldens\.files\.\S+\.(layers|logits)\.bin\.sha256)")
REFUSAL = re.compile(r"  changed \(--accept replaces them\): (\S+\.(layers|logits)\.bin(, |$))+$")


def other_than_rounding(output, limit):
    """The lines that rounding doesn't explain."""
    bad, dumps, manifest = [], 0, False
    for line in output.splitlines():
        dump = DUMP.match(line)
        if dump:
            dumps += 1
            if not float(dump[3]) <= limit:
                bad.append(line)
        elif re.match(r"changed \S+\.manifest\.json:$", line):
            manifest = True
        elif re.match(r"(new|changed|orphan|missing|goldens: (?!goldens not written:$))", line):
            bad.append(line)
        elif manifest and line.startswith("  ") and not (FOLLOWS.match(line) or REFUSAL.match(line)):
            bad.append(line)
    if not dumps:
        bad.append("no dump is said to have changed")
    return bad


def selftest(output, limit):
    """The judgement can fail, on every kind of line that it looks at."""
    for planted in (
        "changed cjk.layers.bin: 2 of 29 rows, at most 0.001 relative L2 (row 3); by row 1: 0.001",
        "changed cjk.logits.bin: 2 of 8 rows, at most nan relative L2 (row 3)",
        "changed cjk.json",
        "new extra.layers.bin",
        "changed golden/qwen2-trained.manifest.json:\n  stop: [2002] becomes [2000]",
        "goldens: pass 1 gave up with exit code 1; nothing was written",
    ):
        assert other_than_rounding(output + "\n" + planted, limit), planted
    assert other_than_rounding("", limit)


def main(output, manifest):
    with open(output, encoding="utf-8") as f:
        text = f.read()
    with open(manifest, encoding="utf-8") as f:
        cases = json.load(f)["precision"]["cases"]
    limit = MULTIPLE * max(max(c["layers"] + c["logits"]) for c in cases.values())
    selftest(text, limit)
    bad = other_than_rounding(text, limit)
    print("\n".join(bad) or f"every change is within {limit:.2g} relative L2: the rounding of another CPU model")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
