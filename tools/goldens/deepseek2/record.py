#!/usr/bin/env python3
"""Records the goldens of the DeepSeek-V2 fixtures from transformers, or checks the ones that are there.

    python tools/goldens/deepseek2/record.py --check       records again, compares byte for byte, writes nothing
    python tools/goldens/deepseek2/record.py --rounding    the same, where values may differ as rounding does on another CPU
    python tools/goldens/deepseek2/record.py --accept      replaces fixtures, goldens and manifests
    python tools/goldens/deepseek2/record.py --pin         prints a new pins.json: only to move to another reference

Exit codes as of ../record.py: 0 nothing differs, or written; 1 goldens differ; 2 the run can't be trusted.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tensorset"), str(HERE.parent)]

import gate_pass
import gates
import model
import one_pass
import recording

COMMAND = "python tools/goldens/deepseek2/record.py"
CHECKPOINTS = {"deepseek2-bfloat16": "deepseek2-seeded"}
RECORDINGS = [
    recording.Recording(
        name, f"fixtures/{CHECKPOINTS.get(name, name)}", COMMAND, HERE / "one_pass.py", recording.sources(HERE), choices=True
    )
    for name in one_pass.DTYPES
]
GATES = f"fixtures/{gates.FOLDER}"
RECORDINGS.append(recording.Recording(gates.FOLDER, GATES, COMMAND, HERE / "gate_pass.py", recording.sources(HERE)))


def through(folder):
    model.main(folder.parent / gates.FOLDER)
    return one_pass.through(folder) | gate_pass.through(folder.parent / gates.FOLDER)


if __name__ == "__main__":
    sys.exit(recording.main(sys.argv[1:], RECORDINGS, HERE / "model.py", through, __doc__))
