#!/usr/bin/env python3
"""Writes the Qwen3.5 fixture: 8 layers, three of gated DeltaNet to each of full attention, drawn from a seed, bfloat16.

    python tools/goldens/qwen3_5/model.py fixtures/qwen3_5-seeded

Its numbers are chosen for what they let a test see. No two widths agree that an engine could mistake for each other:
hidden 48, heads times head dimension 128, value heads times value dimension 96, keys of 16 and values of 24. Decays per
step reach from 0.2 to 0.99, so that some heads forget at once and others carry a prompt from its start; write strengths
and gates fill their range, no head's like another's; the taps of a convolution weigh alike, so that a shift by one
changes everything behind it. A norm's weight is off its neutral value, which is 0 for all but the gated one. Branches
add a tenth to a third to the stream. The vision tower and the multi-token-prediction head are there because real
checkpoints have them; neither takes part in a forward over text. The head is not tied to the embedding.
"""

import json
import sys
from pathlib import Path

LAYERS, EVERY = 8, 4  # each fourth layer has full attention: 3 and 7
HIDDEN, INTERMEDIATE, VOCAB = 48, 112, 640
HEADS, KV_HEADS, HEAD = 4, 2, 32
KEY_HEADS, VALUE_HEADS, KEY, VALUE, KERNEL = 2, 4, 16, 24, 4
VISION, PATCH, MERGE = 16, 2, 2
SEED = 20350
ALIKE = 0.8
# Ids below 256 are bytes of UTF-8 to the teacher plan; the two turn marks are its only others.
TURN_START, TURN_END = 600, 601

CONFIG = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "dtype": "bfloat16",
    "image_token_id": 604,
    "model_type": "qwen3_5",
    "text_config": {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "attn_output_gate": True,
        "dtype": "bfloat16",
        "eos_token_id": TURN_END,
        "full_attention_interval": EVERY,
        "head_dim": HEAD,
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "initializer_range": 0.02,
        "intermediate_size": INTERMEDIATE,
        "layer_types": ["linear_attention" if (n + 1) % EVERY else "full_attention" for n in range(LAYERS)],
        "linear_conv_kernel_dim": KERNEL,
        "linear_key_head_dim": KEY,
        "linear_num_key_heads": KEY_HEADS,
        "linear_num_value_heads": VALUE_HEADS,
        "linear_value_head_dim": VALUE,
        "max_position_embeddings": 4096,
        "model_type": "qwen3_5_text",
        "mtp_num_hidden_layers": 1,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "num_key_value_heads": KV_HEADS,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {
            "mrope_interleaved": True,
            "mrope_section": [2, 1, 1],
            "partial_rotary_factor": 0.25,
            "rope_theta": 100000.0,
            "rope_type": "default",
        },
        "tie_word_embeddings": False,
        "use_cache": True,
        "vocab_size": VOCAB,
    },
    "tie_word_embeddings": False,
    "video_token_id": 605,
    "vision_config": {
        "depth": 1,
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_size": VISION,
        "in_channels": 3,
        "initializer_range": 0.02,
        "intermediate_size": 2 * VISION,
        "model_type": "qwen3_5_vision",
        "num_heads": 2,
        "num_position_embeddings": 16,
        "out_hidden_size": HIDDEN,
        "patch_size": PATCH,
        "spatial_merge_size": MERGE,
        "temporal_patch_size": 2,
    },
    "vision_end_token_id": 603,
    "vision_start_token_id": 602,
}


def shapes():
    """Name -> shape of every tensor of the checkpoint."""
    text, keys, values = "model.language_model.", KEY_HEADS * KEY, VALUE_HEADS * VALUE
    out = {text + "embed_tokens.weight": (VOCAB, HIDDEN), text + "norm.weight": (HIDDEN,), "lm_head.weight": (VOCAB, HIDDEN)}
    for n, kind in enumerate(CONFIG["text_config"]["layer_types"]):
        layer = {"input_layernorm": (HIDDEN,), "post_attention_layernorm": (HIDDEN,), "mlp.down_proj": (HIDDEN, INTERMEDIATE)}
        layer |= {f"mlp.{x}_proj": (INTERMEDIATE, HIDDEN) for x in ("gate", "up")}
        if kind == "linear_attention":
            mixer = {"in_proj_qkv": (2 * keys + values, HIDDEN), "in_proj_z": (values, HIDDEN), "out_proj": (HIDDEN, values),
                     "conv1d": (2 * keys + values, 1, KERNEL), "norm": (VALUE,)}  # fmt: skip
            mixer |= {f"in_proj_{x}": (VALUE_HEADS, HIDDEN) for x in "ab"}
            out |= {f"{text}layers.{n}.linear_attn.{x}": (VALUE_HEADS,) for x in ("A_log", "dt_bias")}
            layer |= {"linear_attn." + k: v for k, v in mixer.items()}
        else:
            mixer = {"q_proj": (2 * HEADS * HEAD, HIDDEN), "o_proj": (HIDDEN, HEADS * HEAD), "q_norm": (HEAD,), "k_norm": (HEAD,)}
            mixer |= {x + "_proj": (KV_HEADS * HEAD, HIDDEN) for x in "kv"}
            layer |= {"self_attn." + k: v for k, v in mixer.items()}
        out |= {f"{text}layers.{n}.{k}.weight": v for k, v in layer.items()}
    return out | unused_shapes()


def unused_shapes():
    """The vision tower, and of the prediction head what lies outside its layer."""
    wide, merged, v = 2 * VISION, VISION * MERGE**2, "model.visual."
    linear = {"blocks.0.attn.qkv": (3 * VISION, VISION), "blocks.0.attn.proj": (VISION, VISION),
              "blocks.0.mlp.linear_fc1": (wide, VISION), "blocks.0.mlp.linear_fc2": (VISION, wide),
              "merger.linear_fc1": (merged, merged), "merger.linear_fc2": (HIDDEN, merged)}  # fmt: skip
    norms = {x: (VISION,) for x in ("blocks.0.norm1", "blocks.0.norm2", "merger.norm")}
    out = {v + "patch_embed.proj.weight": (VISION, 3, 2, PATCH, PATCH), v + "patch_embed.proj.bias": (VISION,)}
    out[v + "pos_embed.weight"] = (CONFIG["vision_config"]["num_position_embeddings"], VISION)
    for name, shape in (linear | norms).items():
        out |= {f"{v}{name}.weight": shape, f"{v}{name}.bias": shape[:1]}
    out |= {f"mtp.{x}.weight": (HIDDEN,) for x in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden")}
    return out | {"mtp.fc.weight": (HIDDEN, 2 * HIDDEN)}


def draw(rng, name, shape):
    import numpy as np

    if name.endswith("A_log"):  # one head of each speed, in an order of the layer's own
        return np.log(rng.permutation([0.02, 0.1, 0.5, 1.5]) * rng.uniform(0.8, 1.25, shape))
    if name.endswith("dt_bias"):
        return rng.uniform(-1.0, 1.0, shape)
    if name.endswith("linear_attn.norm.weight"):  # as it is, where all other norms add 1
        return rng.uniform(0.5, 1.5, shape)
    if "norm" in name and len(shape) == 1:
        return rng.uniform(-0.5, 0.5, shape)
    scale = {"embed_tokens": HIDDEN**0.5, "conv1d": 1.0, "in_proj_b": 1.5, "out_proj": 0.6, "o_proj": 2.0, "down_proj": 0.5}
    factor = next((x for part, x in scale.items() if part in name), 1.0)
    return rng.standard_normal(shape) * factor / max(shape[-1], 1) ** 0.5


def alike(x):
    """Queries that resemble their keys: what a position writes it also reads. Else the first positions read next to
    nothing, the norm behind blows that up, and with it what bfloat16 rounds."""
    keys = KEY_HEADS * KEY
    x[:keys] = ALIKE * x[keys : 2 * keys] + (1 - ALIKE**2) ** 0.5 * x[:keys]
    return x


def tensors():
    """Name -> float64 array, in name order, from one generator."""
    import numpy as np

    rng = np.random.default_rng(SEED)
    out = {name: draw(rng, name, shape) for name, shape in sorted(shapes().items())}
    return {name: alike(x) if "in_proj_qkv" in name or "conv1d" in name else x for name, x in out.items()}


def write(folder):
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    weights = {name: torch.tensor(data).to(torch.bfloat16) for name, data in tensors().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    write(Path(sys.argv[1]))
