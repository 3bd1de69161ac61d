#!/usr/bin/env python3
"""Writes the Gemma 4 fixture: 30 layers, five local ones to each global one, drawn from a seed, bfloat16.

    python tools/goldens/gemma4/model.py fixtures/gemma4-window

Its numbers are chosen for what they let a test see. The window is 8, so that a prompt of 40 tokens crosses it; local
and global layers differ in heads, in head dimension, in rotary base and in how much of a head turns; gains are spread
instead of ones, and an embedding's scale, sqrt(40), is no power of two. Queries and keys have gains that keep scores
small: attention then looks at the whole window, its oldest position included. Branches add a tenth to a quarter to the
stream: with twice that a random model amplifies what an 8-bit KV cache rounds tenfold from the first layer to the last.
"""

import json
import sys
from pathlib import Path

LAYERS, EVERY = 30, 6  # each sixth layer is global: 5, 11, 17, 23, 29
HIDDEN, INTERMEDIATE, VOCAB, HEADS = 40, 48, 128, 4
LOCAL = {"kv": 2, "dim": 8}
GLOBAL = {"kv": 1, "dim": 16}
WINDOW = 8
SEED = 20260

CONFIG = {
    "architectures": ["Gemma4ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attention_k_eq_v": True,
    "bos_token_id": 2,
    "dtype": "bfloat16",
    "enable_moe_block": False,
    "eos_token_id": 1,
    "final_logit_softcapping": 4.0,
    "global_head_dim": GLOBAL["dim"],
    "head_dim": LOCAL["dim"],
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": HIDDEN,
    "hidden_size_per_layer_input": 0,
    "initializer_range": 0.02,
    "intermediate_size": INTERMEDIATE,
    "layer_types": ["sliding_attention" if (n + 1) % EVERY else "full_attention" for n in range(LAYERS)],
    "max_position_embeddings": 512,
    "model_type": "gemma4_text",
    "num_attention_heads": HEADS,
    "num_global_key_value_heads": GLOBAL["kv"],
    "num_hidden_layers": LAYERS,
    "num_key_value_heads": LOCAL["kv"],
    "num_kv_shared_layers": 0,
    "pad_token_id": 0,
    "rms_norm_eps": 1e-6,
    "rope_parameters": {
        "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
        "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
    },
    "sliding_window": WINDOW,
    "tie_word_embeddings": True,
    "use_cache": True,
    "use_double_wide_mlp": False,
    "vocab_size": VOCAB,
    "vocab_size_per_layer_input": VOCAB,
}


def tensors():
    """Name -> float64 array, in name order, from one generator."""
    import numpy as np

    rng = np.random.default_rng(SEED)
    shapes = {"model.embed_tokens.weight": (VOCAB, HIDDEN), "model.norm.weight": (HIDDEN,)}
    for n, kind in enumerate(CONFIG["layer_types"]):
        p = f"model.layers.{n}."
        own = LOCAL if kind == "sliding_attention" else GLOBAL
        q, kv = HEADS * own["dim"], own["kv"] * own["dim"]
        for name in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            shapes[f"{p}{name}_layernorm.weight"] = (HIDDEN,)
        shapes[p + "layer_scalar"] = (1,)
        for name in ("q", "k"):
            shapes[f"{p}self_attn.{name}_norm.weight"] = (own["dim"],)
        shapes[p + "self_attn.q_proj.weight"] = (q, HIDDEN)
        shapes[p + "self_attn.k_proj.weight"] = (kv, HIDDEN)
        if own is LOCAL:  # a global layer's values are its keys, before the norm
            shapes[p + "self_attn.v_proj.weight"] = (kv, HIDDEN)
        shapes[p + "self_attn.o_proj.weight"] = (HIDDEN, q)
        shapes[p + "mlp.gate_proj.weight"] = shapes[p + "mlp.up_proj.weight"] = (INTERMEDIATE, HIDDEN)
        shapes[p + "mlp.down_proj.weight"] = (HIDDEN, INTERMEDIATE)
    return {name: draw(rng, name, shape) for name, shape in sorted(shapes.items())}


def draw(rng, name, shape):
    # A post norm's gain is what a branch adds to the stream, whose own entries are about 1.
    ranges = {"post_attention": (0.1, 0.25), "post_feedforward": (0.08, 0.2), "layer_scalar": (0.85, 1.05),
              "q_norm": (0.7, 1.3), "k_norm": (0.3, 0.6), "norm": (0.5, 1.5)}  # fmt: skip
    for part, (low, high) in ranges.items():
        if part in name:
            return rng.uniform(low, high, shape)
    if "embed" in name:
        return rng.standard_normal(shape) / HIDDEN**0.5
    return rng.standard_normal(shape) / shape[1] ** 0.5


def write(folder):
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    weights = {name: torch.tensor(data).to(torch.bfloat16) for name, data in tensors().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    write(Path(sys.argv[1]))
