"""Writes tiny.gguf and tiny.json in this folder: a seeded llama in a GGUF file, and
what transformers computes with its dequantised weights.

    .venv-goldens/bin/python -m pip install gguf==0.19.0
    .venv-goldens/bin/python engine/reference/testdata/record_gguf_model.py

The file is written and quantised by the Python package gguf, the rows of q and k
permuted as llama.cpp's conversion does. The rows of the residual stream, the logits
and the tokens are those of transformers' LlamaForCausalLM in float32.
"""

import json
import pathlib

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Q
from transformers import LlamaConfig, LlamaForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
HIDDEN, INTER, HEADS, KV, LAYERS, VOCAB, THETA = 32, 64, 4, 2, 2, 64, 5000.0
D = HIDDEN // HEADS
IDS = [0, 9, 43, 44, 30, 1, 17, 17, 5]

# Each type that a row of 32 can have, on a matrix of either layer.
TYPES = {
    "attn_q": [Q.Q4_1, Q.Q5_0], "attn_k": [Q.Q5_1, Q.Q8_0], "attn_v": [Q.Q4_0, Q.F16], "attn_output": [Q.BF16, Q.Q4_1],
    "ffn_gate": [Q.Q8_0, Q.Q5_1], "ffn_up": [Q.Q4_1, Q.Q4_0], "ffn_down": [Q.Q5_0, Q.F32],
}  # fmt: skip
SHAPES = {
    "attn_q": (HIDDEN, HIDDEN), "attn_k": (KV * D, HIDDEN), "attn_v": (KV * D, HIDDEN), "attn_output": (HIDDEN, HIDDEN),
    "ffn_gate": (INTER, HIDDEN), "ffn_up": (INTER, HIDDEN), "ffn_down": (HIDDEN, INTER),
}  # fmt: skip
NAMES = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
}  # fmt: skip


def tokens():
    out = ["<|im_start|>", "<|im_end|>"] + list("abcdefghijklmnopqrstuvwxyz0123456789") + ["Ġ", "Ċ", ".", ","]
    out += [a + b for a, b in MERGES]
    types = [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.NORMAL] * (len(out) - 2)
    while len(out) < VOCAB:
        out.append(f"[PAD{len(out)}]")
        types.append(gguf.TokenType.UNUSED)
    return out, types


MERGES = [("Ġ", "a"), ("t", "h"), ("th", "e"), ("Ġ", "the"), ("i", "n"), ("u", "s"), ("us", "e"), ("use", "r")]
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def permute(w, heads):
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def write(path):
    rng = np.random.default_rng(11)
    w = gguf.GGUFWriter(path, "llama")
    w.add_type("model")
    w.add_name("tiny")
    w.add_context_length(128)
    w.add_embedding_length(HIDDEN)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(INTER)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(D)
    w.add_rope_freq_base(THETA)
    w.add_vocab_size(VOCAB)
    w.add_quantization_version(2)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("smollm")
    words, types = tokens()
    w.add_token_list(words)
    w.add_token_types(types)
    w.add_token_merges([" ".join(m) for m in MERGES])
    w.add_bos_token_id(0)
    w.add_eos_token_id(1)
    w.add_add_bos_token(False)
    w.add_chat_template(TEMPLATE)

    def add(name, data, kind):
        if kind == Q.F32:
            w.add_tensor(name, data)
        else:
            w.add_tensor(name, gguf.quants.quantize(data, kind), raw_dtype=kind)

    def normal(std, *shape, mean=0.0):
        return (mean + std * rng.standard_normal(shape)).astype(np.float32)

    add("token_embd.weight", normal(1, VOCAB, HIDDEN), Q.Q8_0)
    for n in range(LAYERS):
        add(f"blk.{n}.attn_norm.weight", normal(0.2, HIDDEN, mean=1), Q.F32)
        add(f"blk.{n}.ffn_norm.weight", normal(0.2, HIDDEN, mean=1), Q.F32)
        for name, shape in SHAPES.items():
            m = normal(1.5 / np.sqrt(shape[1]), *shape)
            if name in ("attn_q", "attn_k"):
                m = permute(m, HEADS if name == "attn_q" else KV)
            add(f"blk.{n}.{name}.weight", m, TYPES[name][n])
    add("output_norm.weight", normal(0.2, HIDDEN, mean=1), Q.F32)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def load(path):
    """The weights by Hugging Face names, q and k as they were before."""
    out = {}
    for t in gguf.GGUFReader(path).tensors:
        v = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
        part = t.name.split(".")
        if part[0] == "blk":
            if part[2] in ("attn_q", "attn_k"):
                heads = HEADS if part[2] == "attn_q" else KV
                v = v.reshape(heads, D // 2, 2, -1).swapaxes(1, 2).reshape(v.shape)
            name = f"model.layers.{part[1]}.{NAMES[part[2]]}.weight"
        else:
            name = {"token_embd": "model.embed_tokens.weight", "output_norm": "model.norm.weight"}[part[0]]
        out[name] = torch.from_numpy(np.ascontiguousarray(v))
    out["lm_head.weight"] = out["model.embed_tokens.weight"]
    return out


@torch.no_grad()
def compute(state):
    torch.set_num_threads(1)
    config = LlamaConfig(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=INTER, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=KV, max_position_embeddings=128, rms_norm_eps=1e-5, rope_theta=THETA, tie_word_embeddings=True,
        attn_implementation="eager",
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    model.load_state_dict(state)
    rows = {}
    hooks = [
        layer.register_forward_hook(lambda _m, _a, out, n=n: rows.__setitem__(n, (out[0] if isinstance(out, tuple) else out)[0, -1].tolist()))
        for n, layer in enumerate(model.model.layers)
    ]
    logits = model(torch.tensor([IDS])).logits[0, -1]
    for h in hooks:
        h.remove()
    ids, output = list(IDS), []
    for _ in range(6):
        output.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
        ids.append(output[-1])
    embed = model.model.embed_tokens.weight[IDS[-1]].tolist()
    return {"ids": IDS, "rows": [embed] + [rows[n] for n in range(LAYERS)], "logits": logits.tolist(), "output_ids": output}


if __name__ == "__main__":
    write(HERE / "tiny.gguf")
    text = json.dumps(compute(load(HERE / "tiny.gguf")), separators=(",", ":")).replace("],[", "],\n[")
    (HERE / "tiny.json").write_text(text + "\n", encoding="utf-8")
