"""The gates without a model around them: fixtures/deepseek-gates, and their formulas in float64.

Per gate NAME.json, a config that its class takes, and NAME.safetensors with its weight and, of v3, its bias, as float32
copies of bfloat16 values. The biases of v3 are below zero, so that most experts are chosen by negative scores: a group
mask of 0 in the place of -inf then prefers experts of the wrong groups.
"""

import json

import numpy as np

FOLDER = "deepseek-gates"
SEED, EXPERTS, HIDDEN = 20274, 16, 48
COMMON = {
    "hidden_size": HIDDEN, "n_group": 4, "n_routed_experts": EXPERTS, "num_attention_heads": 4, "topk_group": 2,
}  # fmt: skip
CONFIGS = {
    "v2_groups": COMMON | {
        "model_type": "deepseek_v2", "norm_topk_prob": False, "num_experts_per_tok": 3, "routed_scaling_factor": 16.0,
        "topk_method": "group_limited_greedy",
    },
    "v3": COMMON | {
        "model_type": "deepseek_v3", "norm_topk_prob": True, "num_experts_per_tok": 4, "routed_scaling_factor": 2.5,
        "scoring_func": "sigmoid", "topk_method": "noaux_tc",
    },
}  # fmt: skip


def write(folder):
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(SEED)
    for name, config in CONFIGS.items():
        tensors = {"weight": rng.standard_normal((EXPERTS, HIDDEN)) / HIDDEN**0.5}
        if name == "v3":
            tensors["e_score_correction_bias"] = rng.uniform(-1.1, -0.6, EXPERTS)
        rounded = {k: torch.tensor(v).to(torch.bfloat16).float() for k, v in tensors.items()}
        (folder / f"{name}.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        save_file(rounded, folder / f"{name}.safetensors", metadata={"format": "pt"})


def best(scores, k):
    return np.sort(np.argsort(-scores, axis=-1, kind="stable")[:, :k], axis=-1)


def selection(config, logits, bias=None):
    """What experts are chosen by, before groups are masked, and what their weights are made of."""
    if bias is None:
        y = np.exp(logits - logits.max(1, keepdims=True))
        return (y / y.sum(1, keepdims=True),) * 2
    scores = 1 / (1 + np.exp(-logits))
    return scores + bias, scores


def choose(config, by, outside):
    """Ids ascending, and the smallest margin of each row: of its groups, and of its experts. outside masks the rest."""
    c = config
    groups = by.reshape(len(by), c["n_group"], -1)
    ranked = np.sort(groups)[..., ::-1]
    worth = ranked[..., 0] if c["model_type"] == "deepseek_v2" else ranked[..., :2].sum(-1)
    kept = np.zeros(worth.shape, bool)
    np.put_along_axis(kept, best(worth, c["topk_group"]), True, 1)
    masked = np.where(np.repeat(kept, groups.shape[2], 1), by, outside)
    ids = best(masked, c["num_experts_per_tok"])
    order, g, k = np.sort(worth)[:, ::-1], c["topk_group"], c["num_experts_per_tok"]
    experts = np.sort(np.where(np.repeat(kept, groups.shape[2], 1), by, -np.inf))[:, ::-1]
    return ids, np.minimum(order[:, g - 1] - order[:, g], experts[:, k - 1] - experts[:, k])


def weights(config, scores, ids):
    out = np.take_along_axis(scores, ids, 1)
    if config["norm_topk_prob"]:
        out = out / out.sum(1, keepdims=True)
    return out * config["routed_scaling_factor"]
