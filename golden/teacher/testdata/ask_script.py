"""Asks qwen_teacher_reference.py what it makes of summaries.

    python3 ask_script.py SCRIPT FOLDER < [{"name": …, "summary": …}, …]

The script's own main runs, on stand-ins for torch and transformers and a model that
answers with a fixed row. An answer is "refuses" where the script raises, "dies" where
anything else in it or below does, or "accepts", with what was raised.
"""

import importlib.util
import io
import json
import linecache
import shutil
import sys
import traceback
import types
from contextlib import redirect_stdout
from pathlib import Path

import numpy


def stand_ins(vocabulary):
    torch = types.ModuleType("torch")
    torch.device = lambda name: name
    torch.bfloat16 = "bfloat16"
    torch.__version__ = "0"
    transformers = types.ModuleType("transformers")
    transformers.__version__ = "0"
    model = types.SimpleNamespace(eval=lambda: None, config=types.SimpleNamespace(text_config=types.SimpleNamespace(vocab_size=vocabulary)))
    transformers.Qwen3_5ForConditionalGeneration = types.SimpleNamespace(from_pretrained=lambda *a, **k: model)
    sys.modules.update(torch=torch, transformers=transformers)


def load(script, folder):
    copy = folder / "script.py"
    shutil.copyfile(script, copy)
    (folder / "uv.lock").write_text("")
    spec = importlib.util.spec_from_file_location("script", copy)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(module, folder, summary):
    for name in ("target.bin", "evidence.json"):
        (folder / name).unlink(missing_ok=True)
    (folder / "summary.json").write_text(summary, encoding="utf-8")
    try:
        vocabulary = int(json.loads(summary)["reference_input"]["vocabulary_size"])
    except (KeyError, TypeError, ValueError):
        vocabulary = 1
    stand_ins(vocabulary)
    module.last_logits = lambda model, torch, device, tokens, cache: (numpy.arange(vocabulary, dtype=numpy.float32), [])
    sys.argv = ["script", "--model-dir", "none", "--source-teacher-summary", str(folder / "summary.json"), "--output-target", str(folder / "target.bin"),
                "--output-evidence", str(folder / "evidence.json"), "--device", "cpu"]
    try:
        with redirect_stdout(io.StringIO()):
            module.main()
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raised = last.filename == module.__file__ and linecache.getline(last.filename, last.lineno).strip().startswith("raise ")
        return f"{'refuses' if raised else 'dies'}: {type(error).__name__}: {error}"
    return "accepts"


def main(script, folder):
    folder = Path(folder)
    module = load(script, folder)
    json.dump([answer(module, folder, asked["summary"]) for asked in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
