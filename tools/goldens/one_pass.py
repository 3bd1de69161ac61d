#!/usr/bin/env python3
"""One recording of all prompts from a freshly loaded model, into a folder of its own. Started by record.py, twice.

Writes FOLDER/dumps/ (the dump folder), FOLDER/prompts.json and FOLDER/facts.json: what the manifest needs to know and
only a process with torch can tell.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import arithmetic
import decode
import dumps
import installed
import pins
import prompts
import residual
from failure import Failure, Untrusted
from layout import Layout

MAX_NEW = 8

# Exit codes towards record.py. Not 1, which is what Python gives for a traceback: that proves nothing about a golden.
UNTRUSTED, REFUSED = 2, 3


def load(folder):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, dtype=torch.float32, attn_implementation=arithmetic.ATTENTION
        ).eval()
    except Exception as err:  # the libraries raise types of their own, and each means that the folder can't be used
        raise Untrusted(f"checkpoint: {type(err).__name__}: {(str(err).splitlines() or ['no reason'])[0]}") from err
    return model, tokenizer


def stop_ids(model):
    eos = model.generation_config.eos_token_id
    return [eos] if isinstance(eos, int) else list(eos)


def data(tensor):
    return tensor.numpy().astype("<f4").tobytes()


def norm_rank(model):
    """Rank of each token's embedding by norm, 0 the smallest."""
    order = model.get_input_embeddings().weight.norm(dim=1).argsort(stable=True).tolist()
    return {token: rank for rank, token in enumerate(order)}


def record(model, tokenizer, entry, text, ids, out):
    """Writes one prompt's three files; returns (output ids, layer rows, logit rows)."""
    rows = residual.capture(model, ids)
    residual.check_endpoints(model, ids, rows)
    residual.check_interior(model, ids, rows)
    stop = stop_ids(model)
    answer = decode.greedy(model, tokenizer, ids, stop, MAX_NEW)
    name = entry["name"]
    (out / f"{name}.layers.bin").write_bytes(dumps.layers([data(r) for r in rows], model.config.hidden_size, text))
    (out / f"{name}.logits.bin").write_bytes(dumps.logits([data(r) for r in answer.rows], model.config.vocab_size))
    record = {}
    if "prompt" in entry:
        record["prompt"] = entry["prompt"]
        if entry.get("system") is not None:
            record["system"] = entry["system"]
    record |= {
        "text": text,
        "token_ids": ids,
        "output_ids": answer.output_ids,
        "decoded": answer.text,
        "stop": stop,
    }
    (out / f"{name}.json").write_bytes(dumps.case(record))
    return answer.output_ids, [r.numpy() for r in rows], [r.numpy() for r in answer.rows]


def engine(versions, layout):
    return {
        "name": "transformers",
        "version": versions["transformers"],
        "dtype": "float32",
        "layers": "f32",
        "logits": "f32",
        "model": layout.name,
    }


def run(layout, folder):
    want = pins.load(layout.at(layout.pins))
    got = installed.reference(want["modules"])
    pins.demand(got, want)
    import float64  # only now are torch and numpy known to be there
    import torch

    arithmetic.settle()
    model, tokenizer = load(layout.at(layout.checkpoint))
    entries = prompts.load(layout.at(layout.prompts_source))
    texts = {e["name"]: prompts.text(e, tokenizer) for e in entries}
    ids = {e["name"]: prompts.ids(e, tokenizer) for e in entries}
    with torch.no_grad():
        prompts.hold(entries, prompts.Facts(ids, tokenizer.all_special_ids, norm_rank(model)))
        seen = installed.executed(lambda: run_through(model, tokenizer))
        pins.unpinned(seen, want)
        exact = float64.Model(layout.at(layout.checkpoint))
        out = folder / "dumps"
        out.mkdir()
        precision = {}
        for e in entries:
            n = e["name"]
            try:
                precision[n] = float64.precision(exact, ids[n], *record(model, tokenizer, e, texts[n], ids[n], out))
            except Failure as err:
                raise type(err)(f"{n}: {err}") from err
            print(f"recorded {n}: {len(ids[n])} tokens, three self-checks passed", file=sys.stderr, flush=True)
    (out / "engine.json").write_bytes(dumps.case(engine(got["versions"], layout)))
    (folder / "prompts.json").write_bytes(prompts.written(entries, texts, ids))
    facts = {
        "cases": [e["name"] for e in entries],
        "reference": got,
        "arithmetic": arithmetic.describe(),
        "precision": precision,
        "stop": stop_ids(model),
        "max_new": MAX_NEW,
    }
    (folder / "facts.json").write_text(json.dumps(facts, allow_nan=False), encoding="utf-8")


def run_through(model, tokenizer):
    """Every kind of call that a recording makes, to see which source files it runs through."""
    entry = {"name": "probe", "prompt": "a"}
    prompts.text(entry, tokenizer)
    prompts.ids(entry, tokenizer)
    residual.capture(model, [0, 1])
    decode.greedy(model, tokenizer, [0, 1], [], 2)


def main():
    try:
        run(Layout(Path(sys.argv[1]), sys.argv[2]), Path(sys.argv[3]))
    except Failure as err:
        print(f"goldens: {err}", file=sys.stderr)
        return UNTRUSTED if isinstance(err, Untrusted) else REFUSED
    except OSError as err:
        print(f"goldens: {err.strerror}", file=sys.stderr)
        return UNTRUSTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
