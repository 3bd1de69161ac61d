#!/usr/bin/env python3
"""Writes the DeepSeek-V2 fixtures, drawn from a seed, bfloat16.

    python tools/goldens/deepseek2/model.py fixtures/deepseek2-seeded      27 layers in the manner of V2-Lite
    python tools/goldens/deepseek2/model.py fixtures/deepseek2-grouped     5 layers with what the larger V2 has more
    python tools/goldens/deepseek2/model.py fixtures/deepseek-gates        gates alone; see gates.py

Numbers are chosen for what they let a test see. No two widths agree that an engine could mistake for each other: hidden
48, queries and keys 4 x (12 + 8), values 4 x 16, latent 24, rank of the queries 20. YaRN's ramp lies where prompts of a
few dozen tokens feel it, and mscale differs from mscale_all_dim, so that both the rotary tables and the softmax scale
have a factor. Routed and shared experts weigh alike, and a branch adds about a seventh to the stream in every layer: the
27 layers amplify what a layer rounds less than tenfold.

Routes tie on purpose, in late layers, so that what a flip does stays short. In layer 24 two pairs of experts have one
row of the gate each: where one of a pair is chosen and the other not, nothing but the order of experts decides. In layer
22 the rows of each four experts are a step of bfloat16 apart in one weight, in layer 18 a step in all of them.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import gates

HIDDEN, VOCAB, EXPERTS = 48, 512, 16
HEADS, NOPE, ROPE, VALUE, LATENT = 4, 12, 8, 16, 24
SEED = {"deepseek2-seeded": 20272, "deepseek2-grouped": 20273}
SAME, STEP, STEPS = 24, 22, 18

CONFIG = {
    "architectures": ["DeepseekV2ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "dtype": "bfloat16",
    "eos_token_id": 2,
    "first_k_dense_replace": 1,
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "initializer_range": 0.02,
    "intermediate_size": 112,
    "kv_lora_rank": LATENT,
    "max_position_embeddings": 2560,
    "mlp_bias": False,
    "model_type": "deepseek_v2",
    "moe_intermediate_size": 8,
    "n_group": 1,
    "n_routed_experts": EXPERTS,
    "n_shared_experts": 2,
    "norm_topk_prob": False,
    "num_attention_heads": HEADS,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 27,
    "num_key_value_heads": HEADS,
    "pretraining_tp": 1,
    "q_lora_rank": None,
    "qk_nope_head_dim": NOPE,
    "qk_rope_head_dim": ROPE,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "factor": 40.0,
        "mscale": 1.0,
        "mscale_all_dim": 0.707,
        "original_max_position_embeddings": 64,
        "rope_theta": 10000.0,
        "rope_type": "yarn",
    },
    "routed_scaling_factor": 1.0,
    "tie_word_embeddings": False,
    "topk_group": 1,
    "topk_method": "greedy",
    "use_cache": True,
    "v_head_dim": VALUE,
    "vocab_size": VOCAB,
}
GROUPED = CONFIG | {
    "first_k_dense_replace": 2,
    "n_group": 4,
    "num_experts_per_tok": 3,
    "num_hidden_layers": 5,
    "q_lora_rank": 20,
    "routed_scaling_factor": 2.5,
    "topk_group": 2,
    "topk_method": "group_limited_greedy",
}
CONFIGS = {"deepseek2-seeded": CONFIG, "deepseek2-grouped": GROUPED}


def shapes(c):
    """Name -> shape of every tensor of the checkpoint."""
    out = {"model.embed_tokens": (VOCAB, HIDDEN), "model.norm": (HIDDEN,), "lm_head": (VOCAB, HIDDEN)}
    queries = HEADS * (NOPE + ROPE)
    for n in range(c["num_hidden_layers"]):
        layer = {"input_layernorm": (HIDDEN,), "post_attention_layernorm": (HIDDEN,)}
        attention = {"kv_a_proj_with_mqa": (LATENT + ROPE, HIDDEN), "kv_a_layernorm": (LATENT,)}
        attention |= {"kv_b_proj": (HEADS * (NOPE + VALUE), LATENT), "o_proj": (HIDDEN, HEADS * VALUE)}
        if rank := c["q_lora_rank"]:
            attention |= {"q_a_proj": (rank, HIDDEN), "q_a_layernorm": (rank,), "q_b_proj": (queries, rank)}
        else:
            attention["q_proj"] = (queries, HIDDEN)
        layer |= {"self_attn." + k: v for k, v in attention.items()}
        widths = {"mlp.": c["intermediate_size"]}
        if n >= c["first_k_dense_replace"]:
            layer["mlp.gate"] = (EXPERTS, HIDDEN)
            widths = {f"mlp.experts.{e}.": c["moe_intermediate_size"] for e in range(EXPERTS)}
            widths["mlp.shared_experts."] = c["moe_intermediate_size"] * c["n_shared_experts"]
        for p, width in widths.items():
            layer |= {p + "gate_proj": (width, HIDDEN), p + "up_proj": (width, HIDDEN), p + "down_proj": (HIDDEN, width)}
        out |= {f"model.layers.{n}.{k}": v for k, v in layer.items()}
    return {k + ".weight": v for k, v in out.items()}


# What a branch's last projection is drawn with, so that it adds a seventh to a stream whose entries are about 1.
BRANCH = {"o_proj": 0.36, "mlp.down_proj": 0.3, "shared_experts.down_proj": 0.25, ".down_proj": 0.8}
SHARP = 0.7  # of queries: what bfloat16 rounds in a score, a sharp softmax multiplies
GROWTH = 1.02  # of the stream, per layer; branches grow along


def draw(rng, name, shape, weigh=1.0):
    """weigh is what routed experts are multiplied by."""
    if "norm" in name:
        return rng.uniform(0.5, 1.5, shape)
    if name.endswith(("q_proj.weight", "q_b_proj.weight")):
        return rng.standard_normal(shape) * SHARP / shape[-1] ** 0.5
    scale = HIDDEN**0.5 if "embed" in name else 1.0
    if branch := next((x for part, x in BRANCH.items() if part in name), None):
        scale = branch * GROWTH ** int(name.split(".")[2]) / (weigh if ".experts." in name else 1)
    return rng.standard_normal(shape) * scale / shape[-1] ** 0.5


def tie(gate, layer):
    """The rows of a gate, tied as the layer's are."""
    import torch

    rows = gate.clone()
    if layer == SAME:
        rows[11], rows[6] = rows[3], rows[5]
    for first in range(0, EXPERTS, 4) if layer in (STEP, STEPS) else ():
        for n in range(1, 4):
            rows[first + n] = rows[first]
            bits = rows[first + n].view(torch.int16)
            if layer == STEP:
                bits[n] += 1
            else:
                bits += torch.tensor([1 if i >> n & 1 else -1 for i in range(HIDDEN)], dtype=torch.int16)
    return rows


def tensors(name):
    """Name -> bfloat16 tensor, in name order, from one generator."""
    import numpy as np
    import torch

    c, rng = CONFIGS[name], np.random.default_rng(SEED[name])
    drawn = {k: draw(rng, k, shape, c["routed_scaling_factor"]) for k, shape in sorted(shapes(c).items())}
    out = {k: torch.tensor(v).to(torch.bfloat16) for k, v in drawn.items()}
    if c is CONFIG:
        for layer in (SAME, STEP, STEPS):
            key = f"model.layers.{layer}.mlp.gate.weight"
            out[key] = tie(out[key], layer)
    return out


def write(folder):
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    config = CONFIGS[folder.name]
    (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    save_file(tensors(folder.name), folder / "model.safetensors", metadata={"format": "pt"})


def main(folder):
    if folder.name != gates.FOLDER:
        return write(folder)
    return gates.write(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
