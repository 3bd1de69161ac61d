"""Writes bfloat16.safetensors in this folder: what transformers computes in bfloat16,
with eager attention on the CPU, with three models of this repository.

    .venv-goldens/bin/python -m pip install gguf==0.19.0
    OMP_NUM_THREADS=1 .venv-goldens/bin/python engine/reference/testdata/record_bfloat16.py

Tensors are named MODEL/PROBE, [positions, width]: all places of a few layers and
their inputs at all positions, and the residual stream, the final norm and the logits
at the last one as MODEL/last/PROBE; of torch's fused attention, by the formula and not
by the flash kernel, layer 0 as MODEL/fused/PROBE. tiny.gguf has weights that bfloat16
doesn't hold.
"""

import json
import pathlib
import sys
import tempfile

import torch
import transformers
from safetensors.torch import save_file
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

import record_gguf_model as tiny

HERE = pathlib.Path(__file__).resolve().parent
FIXTURES = HERE.parents[2] / "fixtures"
IDS = [3, 14, 15, 92, 65, 35, 89, 79, 32, 38, 46, 26]


def folder(path, attention):
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16, attn_implementation=attention)


def llama(attention):
    config = LlamaConfig(
        vocab_size=tiny.VOCAB, hidden_size=tiny.HIDDEN, intermediate_size=tiny.INTER, num_hidden_layers=tiny.LAYERS,
        num_attention_heads=tiny.HEADS, num_key_value_heads=tiny.KV, max_position_embeddings=128, rms_norm_eps=1e-5,
        rope_theta=tiny.THETA, tie_word_embeddings=True,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    model.load_state_dict(tiny.load(HERE / "tiny.gguf"))
    with tempfile.TemporaryDirectory() as path:  # model.to() would round the rotary frequencies too
        model.save_pretrained(path)
        return folder(path, attention)


MODELS = {
    "qwen2-trained": (lambda attention: folder(FIXTURES / "qwen2-trained", attention), IDS, [0, 14]),
    "gemma4-window": (lambda attention: folder(FIXTURES / "gemma4-window", attention), IDS, [0, 5]),  # the window is 8; layer 5 is global
    "tiny.gguf": (llama, tiny.IDS, [0, 1]),
}


class Recorder:
    """Hooks that keep the places of a model by the names that Plumbline has for them."""

    def __init__(self, model):
        self.at, self.layer, self.gemma = {}, 0, "gemma" in type(model).__module__
        inner = model.model
        self.output(inner.embed_tokens, "embed")
        self.output(inner.norm, "final_norm")
        for n, layer in enumerate(inner.layers):
            p, attention = f"blocks.{n}.", layer.self_attn
            layer.register_forward_pre_hook(lambda *_, n=n: setattr(self, "layer", n))
            self.output(layer, p + "resid_post")
            self.output(layer.input_layernorm, p + "attn_norm")
            for part in "qkv":
                self.output(getattr(attention, part + ("_norm" if self.gemma else "_proj")), p + part)
            self.input(attention.o_proj, p + "attn_out")
            self.input(layer.pre_feedforward_layernorm if self.gemma else layer.post_attention_layernorm, p + "resid_mid")
            self.output(layer.post_feedforward_layernorm if self.gemma else layer.mlp, p + "mlp_out")
        module = sys.modules[type(model).__module__]
        rotate = getattr(module.apply_rotary_pos_emb, "plain", module.apply_rotary_pos_emb)

        def watched(*args, **kwargs):
            out = rotate(*args, **kwargs)
            if self.gemma:  # [1, T, heads, d]: q first, then k
                part = "k_rope" if f"blocks.{self.layer}.q_rope" in self.at else "q_rope"
                self.keep(f"blocks.{self.layer}.{part}", out)
            else:  # [1, heads, T, d]
                for part, x in zip(("q_rope", "k_rope"), out, strict=True):
                    self.keep(f"blocks.{self.layer}.{part}", x.transpose(1, 2))
            return out

        watched.plain = rotate
        module.apply_rotary_pos_emb = watched

    def keep(self, name, x):
        # A factor of Gemma 4's layers is applied in place: keep what is there now.
        self.at[name] = x.detach().reshape(x.shape[1], -1).clone()

    def output(self, module, name):
        module.register_forward_hook(lambda _m, _a, out: self.keep(name, out[0] if isinstance(out, tuple) else out))

    def input(self, module, name):
        module.register_forward_pre_hook(lambda _m, args: self.keep(name, args[0]))


PARTS = ["attn_norm", "q", "k", "v", "q_rope", "k_rope", "attn_out", "resid_mid", "mlp_out", "resid_post"]


@torch.no_grad()
def compute(name):
    make, ids, layers = MODELS[name]
    fused = Recorder(model := make("sdpa").eval())
    with sdpa_kernel(SDPBackend.MATH):
        model(torch.tensor([ids]), use_cache=False)
    recorder = Recorder(model := make("eager").eval())
    recorder.keep("logits", model(torch.tensor([ids]), use_cache=False).logits)
    depth = len(model.model.layers)
    rows = ["embed"] + [f"blocks.{n}.resid_post" for n in range(depth)]
    wanted = {rows[n] for n in layers} | {f"blocks.{n}.{part}" for n in layers for part in PARTS}
    out = {f"{name}/{p}": recorder.at[p] for p in sorted(wanted)}
    out[f"{name}/fused/blocks.0.attn_out"] = fused.at["blocks.0.attn_out"]
    return out | {f"{name}/last/{p}": recorder.at[p][-1:].clone() for p in [*rows, "final_norm", "logits"]}


if __name__ == "__main__":
    torch.set_num_threads(1)
    tensors = {}
    for name in MODELS:
        tensors |= compute(name)
    assert all(t.dtype == torch.bfloat16 for t in tensors.values())
    meta = {"ids": json.dumps({name: m[1] for name, m in MODELS.items()}), "layers": json.dumps({name: m[2] for name, m in MODELS.items()}),
            "torch": torch.__version__, "transformers": transformers.__version__}  # fmt: skip
    save_file(tensors, HERE / "bfloat16.safetensors", metadata=meta)
