#!/usr/bin/env python3
"""Records the goldens of the Qwen3.5 fixture from transformers, or checks the ones that are there.

    python tools/goldens/qwen3_5/record.py --check       records again, compares byte for byte, writes nothing
    python tools/goldens/qwen3_5/record.py --rounding    the same, where values may differ as rounding does on another CPU
    python tools/goldens/qwen3_5/record.py --accept      replaces fixture, goldens and manifests
    python tools/goldens/qwen3_5/record.py --pin         prints a new pins.json: only to move to another reference

Exit codes as of ../record.py: 0 nothing differs, or written; 1 goldens differ; 2 the run can't be trusted.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tensorset"), str(HERE.parent)]

import one_pass
import recording
import targets

CHECKPOINT = "fixtures/qwen3_5-seeded"
COMMAND = "python tools/goldens/qwen3_5/record.py"
TEACHER_ONLY = ("plan.py", "targets.py", "teacher.py", "texts.json")

RECORDINGS = [
    recording.Recording(name, CHECKPOINT, COMMAND, HERE / "one_pass.py", recording.sources(HERE, without=TEACHER_ONLY))
    for name in one_pass.DTYPES
]
TENSORS_ONLY = ("prompts.json", "power.py")
SOURCES = recording.sources(HERE, without=TENSORS_ONLY)
RECORDINGS.append(targets.Targets("qwen3_5-teacher", CHECKPOINT, COMMAND, HERE / "teacher.py", SOURCES))


if __name__ == "__main__":
    sys.exit(recording.main(sys.argv[1:], RECORDINGS, HERE / "model.py", one_pass.through, __doc__))
