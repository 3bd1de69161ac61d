#!/usr/bin/env python3
"""Trains the fixture checkpoint (tokenizer and weights) from a seed.

    python tools/goldens/train.py --out FIRST
    python tools/goldens/train.py --stage-two-of FIRST --out SECOND --steps 300 --rate 2e-3 --penalty 4 --seed 20260803

The second stage makes every layer look at its newest cache rows again: training alone leaves heads that see little but
the first position, and there a stale row would not show. SECOND is the fixture.

The result is an input of the recorder, not something the recorder reproduces: the same seed, Go release and torch give
the same weights on one kind of CPU only. training.json in the folder says what made it.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import corpus
import hashing
import model_init
import tokenizer_build

CONTEXT = 256
BATCH = 4
TEXT_SEED = 20260802  # the order of the documents, the same in both stages, so that the held-out ones stay held out


def rate(step, steps, peak, warm=40):
    """Linear warm-up, then a cosine down to a twentieth."""
    if step < warm:
        return peak * (step + 1) / warm
    x = (step - warm) / max(1, steps - warm)
    return peak * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * x)))


def groups(model, decay):
    """Parameter groups: gains, biases and the embedding are left undecayed, so their spread outlives training."""
    free = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    matrices = [p for n, p in free if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in free if p.ndim != 2 or "embed" in n]
    return [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]


def fit(model, stream, held, args):
    """Runs the optimiser; returns the losses (first, last, held out)."""
    import torch

    gen = torch.Generator().manual_seed(args.seed + 1)
    group = model.config.num_attention_heads // model.config.num_key_value_heads
    opt = torch.optim.AdamW(groups(model, args.decay), lr=args.rate, betas=(0.9, 0.98), eps=1e-8)
    model.train()
    first = smooth = None
    began = time.time()
    for step in range(args.steps):
        for g in opt.param_groups:
            g["lr"] = rate(step, args.steps, args.rate)
        at = torch.randint(0, len(stream) - CONTEXT - 1, (BATCH,), generator=gen)
        ids = torch.stack([stream[i : i + CONTEXT + 1] for i in at])
        out = model(input_ids=ids[:, :-1], use_cache=False, output_attentions=args.penalty > 0)
        loss = torch.nn.functional.cross_entropy(out.logits.flatten(0, 1), ids[:, 1:].flatten())
        lack = model_init.inattention(out.attentions, group) if args.penalty > 0 else torch.zeros(())
        opt.zero_grad(set_to_none=True)
        (loss + args.penalty * lack).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        value = loss.item()
        first = value if first is None else first
        smooth = value if smooth is None else 0.95 * smooth + 0.05 * value
        if step % 20 == 0 or step == args.steps - 1:
            print(f"step {step} loss {value:.3f} smooth {smooth:.3f} lack {lack.item():.3f} {time.time() - began:.0f} s", flush=True)
    return first, smooth, evaluate(model, held)


def evaluate(model, held):
    """Mean next-token loss over the held-out stream, in windows of CONTEXT."""
    import torch

    model.eval()
    total = count = 0
    with torch.no_grad():
        for i in range(0, min(len(held) - CONTEXT - 1, 16 * CONTEXT), CONTEXT):
            ids = held[None, i : i + CONTEXT + 1]
            logits = model(input_ids=ids[:, :-1], use_cache=False).logits
            total += torch.nn.functional.cross_entropy(logits[0], ids[0, 1:], reduction="sum").item()
            count += CONTEXT
    return total / count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--stage-two-of", type=Path, metavar="FOLDER", help="go on from this checkpoint's weights")
    parser.add_argument("--penalty", type=float, default=0, help="weight of model_init.inattention, for the second stage")
    parser.add_argument("--seed", type=int, default=20260802)
    parser.add_argument("--steps", type=int, default=1300)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--decay", type=float, default=0.05)
    args = parser.parse_args()
    if args.out.exists() and any(args.out.iterdir()):
        raise SystemExit(f"train: {args.out} is not empty; train into a new folder and move it")

    import torch
    import transformers

    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True)

    go = lambda *a: subprocess.run(["go", *a], check=True, capture_output=True, text=True).stdout.strip()
    docs = corpus.documents(corpus.comments(go("env", "GOROOT")), TEXT_SEED)
    tok = tokenizer_build.train(docs)
    print(f"{len(docs)} documents, {sum(map(len, docs))} characters, {tok.get_vocab_size()} tokens", flush=True)
    cut = len(docs) * 49 // 50
    flat = lambda part: torch.tensor([i for e in tok.encode_batch(part) for i in e.ids], dtype=torch.long)
    stream, held = flat(docs[:cut]), flat(docs[cut:])
    print(f"{len(stream)} tokens to train on, {len(held)} held out", flush=True)

    ids = [tok.token_to_id(s) for s in tokenizer_build.SPECIALS]
    first_stage = None
    if args.stage_two_of:
        model = transformers.Qwen2ForCausalLM.from_pretrained(
            args.stage_two_of, dtype=torch.float32, attn_implementation="eager"  # the one that gives its weights
        )
        first_stage = json.loads((args.stage_two_of / "training.json").read_text(encoding="utf-8"))
        first_stage["weights_sha256"] = hashing.sha256(args.stage_two_of / "model.safetensors")
        model_init.look_at_yourself(model)
    else:
        model = transformers.Qwen2ForCausalLM(model_init.config(ids[0], ids[2]))
        model_init.start(model, args.seed)
    began = time.time()
    first, last, heldout = fit(model, stream, held, args)
    seconds = time.time() - began

    model = model.to(torch.bfloat16)
    model.generation_config = transformers.GenerationConfig(
        bos_token_id=ids[0], eos_token_id=[ids[2], ids[0]], pad_token_id=ids[0], do_sample=False
    )
    rounded = evaluate(model.to(torch.float32), held)
    args.out.mkdir(parents=True, exist_ok=True)
    model.to(torch.bfloat16).save_pretrained(args.out)
    (args.out / "model.safetensors").chmod(0o644)
    tokenizer_build.save(tok, args.out, model_init.SHAPE["max_position_embeddings"])
    note = {
        "schema": "plumbline-training-v1",
        "text": "doc comments of exported declarations of Go's standard library, plain and as ChatML turns",
        "text_sha256": corpus.digest(docs),
        "go": go("env", "GOVERSION"),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "seed": args.seed,
        "steps": args.steps,
        "tokens_per_step": BATCH * CONTEXT,
        "learning_rate": args.rate,
        "weight_decay": args.decay,
        "penalty": args.penalty,
        "loss_first": round(first, 4),
        "loss_last_smoothed": round(last, 4),
        "loss_held_out": round(heldout, 4),
        "loss_held_out_bf16_weights": round(rounded, 4),
    }
    if first_stage:
        note["first_stage"] = first_stage
    (args.out / "training.json").write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(note), f"{seconds:.0f} s")


if __name__ == "__main__":
    main()
