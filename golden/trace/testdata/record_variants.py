"""Writes variants.json: how the Python package tokenizers cuts the embedded sources, for the tests of Tokenise.

usage: python record_variants.py > variants.json

The tokenizer is the trained checkpoint's. It has no token that begins a text, so ids for one are made up.
"""
import hashlib
import json
import pathlib
import sys

from tokenizers import Tokenizer

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "fixtures"
STARTS = {"eos": 2002, "bos": 2001, "x": 87, "period": 13}


def main():
    tok = Tokenizer.from_file(str(FIXTURES / "qwen2-trained" / "tokenizer.json"))
    out = []
    for path in sorted((FIXTURES / "trace-sources").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            source = json.loads(line)
            for system in (0, 1):
                head = ("You are a helpful assistant.\n\n" if system else "") + "User: "
                whole = tok.encode(head + source["text"] + "\n\nAssistant:", add_special_tokens=False)
                first, last = len(head), len(head) + len(source["text"])
                within = [n + 1 for n, (a, b) in enumerate(whole.offsets) if first <= a < b <= last]
                across = [n for n, (a, b) in enumerate(whole.offsets) if a < last and b > first and n + 1 not in within]
                for name, start in STARTS.items():
                    ids = json.dumps([start, *whole.ids], separators=(",", ":")).encode()
                    out.append({"id": f"{path.stem}/{source['id']}", "condition": f"s{system}_{name}", "tokens": len(whole.ids) + 1,
                                "ids_sha256": hashlib.sha256(ids).hexdigest(), "content": within, "crossing": len(across)})
    print("[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in out) + "\n]")


if __name__ == "__main__":
    main()
