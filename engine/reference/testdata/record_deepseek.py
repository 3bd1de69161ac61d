"""Writes the folder deepseek here: a small DeepSeek-V2 with seeded weights, and what transformers computes with it.

    OMP_NUM_THREADS=1 .venv-goldens/bin/python engine/reference/testdata/record_deepseek.py

Two prompts run as one batch, padded on the left, the padding masked and without position ids. Tensors of
recorded.safetensors are named RUN/PROBE, [prompts*slots, width]; routes are sorted by id. The runs:

* transformers: transformers' own classes in float32.
* official: the same with the two formulas of the model's own file that matter here put back: the softmax scale has
  mscale², and the outputs of the chosen experts are weighed and added up in float32 and rounded once.
* official-bfloat16-eager and official-bfloat16-sdpa: official in bfloat16, by both ways to attend.

v3/* is the router of transformers' DeepSeek-V3 with negative scores: its input and weights, and what it chooses.
"""

import json
import math
import pathlib

import torch
import transformers
from safetensors.torch import save_file
from torch.nn import functional
from transformers import AutoModelForCausalLM, DeepseekV2Config, DeepseekV2ForCausalLM, DeepseekV3Config
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2Moe
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3TopkRouter

HERE = pathlib.Path(__file__).resolve().parent / "deepseek"
PROMPTS = [[3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32], [2, 7, 18, 28, 18]]
PAD = 1
CONFIG = DeepseekV2Config(
    vocab_size=48, hidden_size=32, intermediate_size=40, num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=2,
    q_lora_rank=12, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=12, n_routed_experts=8, num_experts_per_tok=3,
    n_shared_experts=2, moe_intermediate_size=8, first_k_dense_replace=1, topk_method="group_limited_greedy", n_group=4, topk_group=2,
    routed_scaling_factor=2.0, norm_topk_prob=False, max_position_embeddings=256, rms_norm_eps=1e-6, tie_word_embeddings=False,
    rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "original_max_position_embeddings": 64,
                     "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 0.9, "mscale_all_dim": 0.707},
)  # fmt: skip


def write_model():
    torch.manual_seed(20)
    model = DeepseekV2ForCausalLM(CONFIG).to(torch.bfloat16)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("norm.weight"):
                p.copy_(1 + 0.2 * torch.randn(p.shape))
            elif "embed" in name:
                p.copy_(torch.randn(p.shape))
            else:
                p.copy_(torch.randn(p.shape) / math.sqrt(p.shape[-1]))
    model.save_pretrained(HERE)
    (HERE / "generation_config.json").unlink(missing_ok=True)


class WeighedOnce(DeepseekV2Moe):
    """The experts' sum as the model's own file has it."""

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        _, weights, ids = self.gate(x)
        total = torch.zeros(rows.shape, dtype=torch.float32)
        for slot in range(ids.shape[1]):
            for row, expert in enumerate(ids[:, slot].tolist()):
                gate, up = functional.linear(rows[row], self.experts.gate_up_proj[expert]).chunk(2, dim=-1)
                y = functional.linear(functional.silu(gate) * up, self.experts.down_proj[expert])
                total[row] += y.float() * weights[row, slot]
        return total.to(x.dtype).reshape(x.shape) + self.shared_experts(x)


@torch.no_grad()
def run(official, dtype, attention):
    model = AutoModelForCausalLM.from_pretrained(HERE, dtype=dtype, attn_implementation=attention).eval()
    at = {}

    def keep(name, x):
        at[name] = x.detach().reshape(-1, x.shape[-1]).clone()

    def output(module, name):
        module.register_forward_hook(lambda _m, _a, out: keep(name, out[0] if isinstance(out, tuple) else out))

    def routes(module, name):
        def hook(_m, _a, out):
            logits, weights, ids = out
            ids, order = ids.sort(dim=-1)
            keep(name + "router_logits", logits)
            keep(name + "route_ids", ids.to(torch.int32))
            keep(name + "route_weights", weights.gather(1, order))

        module.register_forward_hook(hook)

    rope = CONFIG.rope_parameters
    mscale = 0.1 * rope["mscale_all_dim"] * math.log(rope["factor"]) + 1
    output(model.model.embed_tokens, "embed")
    output(model.model.norm, "final_norm")
    for n, layer in enumerate(model.model.layers):
        p = f"blocks.{n}."
        if official:
            layer.self_attn.scaling *= mscale**2
        if hasattr(layer.mlp, "gate"):
            if official:
                layer.mlp.__class__ = WeighedOnce
            routes(layer.mlp.gate, p)
            output(layer.mlp.shared_experts, p + "shared_out")
        output(layer.mlp, p + "mlp_out")
        output(layer, p + "resid_post")
        layer.self_attn.o_proj.register_forward_pre_hook(lambda _m, args, p=p: keep(p + "attn_out", args[0]))
    slots = max(map(len, PROMPTS))
    ids = torch.tensor([[PAD] * (slots - len(p)) + p for p in PROMPTS])
    mask = torch.tensor([[0] * (slots - len(p)) + [1] * len(p) for p in PROMPTS])
    keep("logits", model(input_ids=ids, attention_mask=mask, use_cache=False).logits)
    return at


@torch.no_grad()
def v3():
    torch.manual_seed(21)
    config = DeepseekV3Config(hidden_size=16, n_routed_experts=16, num_experts_per_tok=4, n_group=4, topk_group=2, norm_topk_prob=True, routed_scaling_factor=2.5)
    router = DeepseekV3TopkRouter(config)
    router.weight.copy_(torch.randn(16, 16) / 4)
    router.e_score_correction_bias.copy_(-1.2 - 0.5 * torch.rand(16))
    x = torch.randn(64, 16)
    logits, weights, ids = router(x)
    ids, order = ids.sort(dim=-1)
    return {"input": x, "weight": router.weight.detach(), "bias": router.e_score_correction_bias, "router_logits": logits,
            "route_ids": ids.to(torch.int32), "route_weights": weights.gather(1, order)}  # fmt: skip


if __name__ == "__main__":
    torch.set_num_threads(1)
    write_model()
    runs = {
        "transformers": run(False, torch.float32, "eager"),
        "official": run(True, torch.float32, "eager"),
        "official-bfloat16-eager": run(True, torch.bfloat16, "eager"),
        "official-bfloat16-sdpa": run(True, torch.bfloat16, "sdpa"),
        "v3": v3(),
    }
    tensors = {f"{name}/{probe}": x.contiguous() for name, at in runs.items() for probe, x in at.items()}
    save_file(tensors, HERE / "recorded.safetensors", metadata={
        "prompts": json.dumps(PROMPTS), "pad": str(PAD), "torch": torch.__version__, "transformers": transformers.__version__})  # fmt: skip
