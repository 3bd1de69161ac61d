#!/usr/bin/env python3
"""Records the dumps in smollm2, anew, and its manifest: make real judges them.

  python3 record.py SmolLM2-135M-Instruct.Q4_1.gguf

with the packages of ../requirements.txt; the GGUF is that of
model-requirements.txt. What a folder's judgement must be is the fault planted in it."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROBES = ["--probes", "embed,k_rope,v,resid_mid,resid_post", "--probe-layers", "5"]
# Folder: prompts, options, the script that plants a fault first, the dump row that
# the fault is first in (of layer N: N+1), and the place that it enters by.
FOLDERS = {
    "clean": ("clean", [], None, None, None),
    "rope-base-500": ("rope", ["--rope-freq-base", "500"], None, 1, None),
    "ffn-down-x1.5-L15": ("down", [], ["scale_tensor.py", "blk.15.ffn_down.weight", "1.5"], 16, "blocks.15.resid_post"),
    "probes-clean": ("probes", PROBES, None, None, None),
    "probes-attn-output-x1.5-L3": ("probes", PROBES, ["scale_tensor.py", "blk.3.attn_output.weight", "1.5"], 4, "blocks.3.resid_mid"),
    "probes-kv-heads-L2": ("probes", PROBES, ["swap_heads.py", "blk.2.attn_k.weight", "3", "0", "1"], 3, "blocks.2.k_rope"),
}


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def main(gguf):
    out = os.path.join(HERE, "smollm2")
    shutil.rmtree(out, ignore_errors=True)
    os.mkdir(out)
    manifest = {"model": {"file": os.path.basename(gguf), "sha256": digest(gguf)}, "folders": {}}
    for name, (prompts, options, fault, row, source) in FOLDERS.items():
        folder = os.path.join(out, name)
        with tempfile.TemporaryDirectory() as scratch:
            model, commands = gguf, []
            if fault:
                model = os.path.join(scratch, os.path.basename(gguf))
                commands.append([fault[0], "IN.gguf", "MODEL.gguf", *fault[1:]])
                subprocess.run([sys.executable, "-B", os.path.join(HERE, fault[0]), gguf, model, *fault[1:]], check=True)
            argv = ["--prompts", prompts + ".jsonl", *options]
            commands.append(["plumbline_llamacpp.py", "--model", "MODEL.gguf", "--out", name, *argv])
            adapter = os.path.join(HERE, "..", "plumbline_llamacpp.py")
            subprocess.run([sys.executable, "-B", adapter, "--model", model, "--out", folder, *argv], check=True, cwd=HERE)
        files = {f: digest(os.path.join(folder, f)) for f in sorted(os.listdir(folder))}
        manifest["folders"][name] = {
            "commands": [" ".join(c) for c in commands], "first_bad_row": row, "source": source, "files": files,
        }  # fmt: skip
    with open(os.path.join(HERE, "smollm2.manifest.json"), "w", encoding="utf-8") as f:
        json.dump(manifest, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
