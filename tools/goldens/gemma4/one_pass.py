#!/usr/bin/env python3
"""One recording of all prompts of the Gemma 4 fixture, into a folder of its own. Started by record.py, twice.

Per prompt: one batched prefill, then decode steps along given tokens (a random model would repeat one forever) with the
model's own cache, of which local layers keep no more than their window. Hooks keep q, k and v behind their norms, what attention puts out before o_proj, and the residual
stream; the float64 forward of float64_gemma4.py says how precise each of them is.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import arithmetic
import installed
import pins
from failure import Failure, Untrusted

UNTRUSTED, REFUSED = 2, 3
PARTS = ("q", "k", "v", "attn_out", "resid_post")  # names of Plumbline's probes


class Taps:
    """What the model put out at every position so far: (layer, part) -> list of rows; layer -1 is the embedding."""

    def __init__(self, model):
        self.seen, self.handles = {}, []
        self._after(model.model.embed_tokens, (-1, "embed"))
        for n, layer in enumerate(model.model.layers):
            attn = layer.self_attn
            for module, part in ((attn.q_norm, "q"), (attn.k_norm, "k"), (attn.v_norm, "v"), (layer, "resid_post")):
                self._after(module, (n, part))
            self.handles.append(attn.o_proj.register_forward_pre_hook(self._keep((n, "attn_out"), lambda args: args[0])))

    def _after(self, module, key):
        keep = self._keep(key, lambda out: out[0] if isinstance(out, tuple) else out)
        self.handles.append(module.register_forward_hook(lambda _m, _args, out: keep(_m, out)))

    def _keep(self, key, of):
        def hook(_module, value):
            x = of(value)[0].detach()
            self.seen.setdefault(key, []).extend(x.reshape(x.shape[0], -1).clone())

        return hook

    def close(self):
        for handle in self.handles:
            handle.remove()


def token_ids(entry, vocab):
    """The prompt, and the tokens behind it."""
    import numpy as np

    rng = np.random.default_rng(entry["seed"])
    ids, forced = ([int(i) for i in rng.integers(3, vocab, n)] for n in (entry["tokens"] - 1, entry["new"]))
    return [2, *ids], forced


def decode(model, ids, forced):
    """What the model would choose, and its logit row, before each of the forced tokens, the last of which isn't run; taps."""
    import torch

    taps = Taps(model)
    try:
        out = model(input_ids=torch.tensor([ids]), use_cache=True)
        rows, tokens = [], []
        while True:
            row = out.logits[0, -1].clone()
            rows.append(row)
            tokens.append(int(row.argmax()))
            if len(tokens) == len(forced):
                return tokens, rows, taps.seen
            out = model(input_ids=torch.tensor([forced[len(tokens) - 1 :][:1]]), past_key_values=out.past_key_values, use_cache=True)
    finally:
        taps.close()


def chosen(seen, rows, entry, layers):
    """Tensor name -> float32 tensor of the recorded positions; `logits` has all rows."""
    import torch

    at = entry["positions"]
    out = {"embed": seen[-1, "embed"]} | {f"blocks.{n}.{p}": seen[n, p] for n in range(layers) for p in PARTS}
    total = entry["tokens"] + entry["new"] - 1
    for name, values in out.items():
        if len(values) != total:
            raise Failure(f"{name}: got {len(values)} positions, want {total}")
    return {name: torch.stack([v[i] for i in at]) for name, v in out.items()} | {"logits": torch.stack(rows)}


def load(folder):
    import torch
    from transformers import Gemma4ForCausalLM

    model, info = Gemma4ForCausalLM.from_pretrained(
        folder, local_files_only=True, dtype=torch.float32, attn_implementation=arithmetic.ATTENTION, output_loading_info=True
    )
    wrong = {k: v for k, v in info.items() if v}
    if wrong:
        raise Untrusted(f"checkpoint: the model doesn't take it as it is: {wrong}")
    return model.eval()


def check_window(model, ids, forced, tensors, entry):
    """A window one position wider must change the golden: else the prompt has no power over the window."""
    import torch

    for layer in model.model.layers:
        layer.self_attn.sliding_window = layer.self_attn.sliding_window and layer.self_attn.sliding_window + 1
    model.config.sliding_window += 1
    try:
        _, rows, seen = decode(model, ids, forced)
    finally:
        model.config.sliding_window -= 1
    wide = chosen(seen, rows, entry, len(model.model.layers))["blocks.0.attn_out"]
    for i, pos in enumerate(entry["positions"]):
        same = torch.equal(wide[i], tensors["blocks.0.attn_out"][i])
        if same != (pos < model.config.sliding_window):
            raise Failure(f"position {pos}: a window one wider {'changes nothing' if same else 'acts inside the window'}")


def run(root, checkpoint, folder):
    want = pins.load(HERE / "pins.json")
    got = installed.reference(want["modules"])
    pins.demand(got, want)
    import float64_gemma4
    import torch
    from safetensors.torch import save

    arithmetic.settle()
    model = load(root / checkpoint)
    exact = float64_gemma4.Model(root / checkpoint)
    entries = json.loads((HERE / "prompts.json").read_text(encoding="utf-8"))
    precision = {}
    with torch.no_grad():
        pins.unpinned(installed.executed(lambda: decode(model, [2, 3], [4, 5])), want)
        for entry in entries:
            ids, forced = token_ids(entry, model.config.vocab_size)
            tokens, rows, seen = decode(model, ids, forced)
            tensors = chosen(seen, rows, entry, len(model.model.layers))
            name = entry["name"]
            precision[name] = exact.precision(ids + forced[:-1], entry, tensors)
            check_window(load(root / checkpoint), ids, forced, tensors, entry)
            (folder / f"{name}.safetensors").write_bytes(save({k: v.contiguous() for k, v in tensors.items()}))
            case = {"token_ids": ids, "forced_ids": forced, "output_ids": tokens, "positions": entry["positions"], "why": entry["why"]}
            (folder / f"{name}.json").write_text(json.dumps(case) + "\n", encoding="utf-8")
            print(f"recorded {name}: float64 is {max(precision[name].values()):.2e} away at most", file=sys.stderr)
    facts = {"cases": [e["name"] for e in entries], "reference": got, "arithmetic": arithmetic.describe(), "precision": precision}
    (folder / "facts.json").write_text(json.dumps(facts, allow_nan=False), encoding="utf-8")


def main():
    try:
        run(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
    except Failure as err:
        print(f"goldens: {err}", file=sys.stderr)
        return UNTRUSTED if isinstance(err, Untrusted) else REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
