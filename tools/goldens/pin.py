#!/usr/bin/env python3
"""Prints a new pins.json from what is installed: run it only to move to another reference on purpose.

    python tools/goldens/pin.py fixtures/qwen2-trained > pins.json.new
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import arithmetic
import installed


def main():
    if any(os.environ.get(k) != v for k, v in arithmetic.ENVIRONMENT.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], arithmetic.environment(os.environ))
    import one_pass
    import torch

    arithmetic.settle()
    model, tokenizer = one_pass.load(Path(sys.argv[1]))
    with torch.no_grad():
        seen = installed.executed(lambda: one_pass.run_through(model, tokenizer))
    json.dump(installed.reference(sorted(seen)), sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main()
