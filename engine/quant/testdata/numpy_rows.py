"""Rows and logits of the int8 scheme by an independent numpy implementation.

    python numpy_rows.py ../../../fixtures > numpy_rows.json

Batched attention, fake quantisation (values, not codes) and float64 matmuls: it
shares no code and no order of operations with the Go emulation.
"""
import json
import struct
import sys

import numpy as np

fixtures = sys.argv[1]
raw = open(fixtures + "/qwen2-seeded/model.safetensors", "rb").read()
size = struct.unpack("<Q", raw[:8])[0]
W = {}
for name, info in json.loads(raw[8:8 + size]).items():
    if name != "__metadata__":
        a, b = info["data_offsets"]
        bits = np.frombuffer(raw[8 + size + a:8 + size + b], "<u2").astype(np.uint32) << 16
        W[name] = bits.view(np.float32).astype(np.float64).reshape(info["shape"])
c = json.load(open(fixtures + "/qwen2-seeded/config.json"))
NH, NKV, HD = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]


def fake(x, scale):
    """Round to codes; what is within 2^-31 of a tie is a tie; ties to even."""
    q = np.round(x / np.where(scale == 0, 1, scale) * 2.0**30) / 2.0**30
    return np.clip(np.round(q), -127, 127) * scale


def scale_of(x):
    return np.abs(x).max(-1, keepdims=True) / 127


def act(x):
    return fake(x, scale_of(x))


def row31(x):
    frac, exp = np.frexp(scale_of(x))
    return fake(x, np.ldexp(np.round(frac * 2.0**31), exp - 31))


Q = {n: act(v) for n, v in W.items() if n.endswith("proj.weight")}
E = W["model.embed_tokens.weight"]
E = fake(E, np.abs(E).max() / 127)


def norm(x, g):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + c["rms_norm_eps"]) * g


def rope(x):
    inv = c["rope_theta"] ** (-np.arange(0, HD, 2) / HD)
    angle = np.concatenate([np.arange(len(x))[:, None] * inv] * 2, -1)[:, None]
    lo, hi = x[..., :HD // 2], x[..., HD // 2:]
    return x * np.cos(angle) + np.concatenate([-hi, lo], -1) * np.sin(angle)


def run(ids, rows_int8):
    res = row31 if rows_int8 else (lambda x: x)
    t = len(ids)
    x = res(E[ids])
    out = [x[-1]]
    for n in range(c["num_hidden_layers"]):
        p = f"model.layers.{n}."

        def lin(name, h):
            return act(h) @ Q[p + name + ".weight"].T + W.get(p + name + ".bias", 0.0)

        h = norm(x, W[p + "input_layernorm.weight"])
        q = rope(lin("self_attn.q_proj", h).reshape(t, NH, HD))
        k = rope(lin("self_attn.k_proj", h).reshape(t, NKV, HD)).repeat(NH // NKV, 1)
        v = lin("self_attn.v_proj", h).reshape(t, NKV, HD).repeat(NH // NKV, 1)
        s = np.einsum("thd,shd->hts", q, k) / np.sqrt(HD)
        s = np.where(np.tril(np.ones((t, t), bool)), s, -np.inf)
        s = np.exp(s - s.max(-1, keepdims=True))
        a = np.einsum("hts,shd->thd", s / s.sum(-1, keepdims=True), v).reshape(t, -1)
        x = res(x + lin("self_attn.o_proj", a))
        h = norm(x, W[p + "post_attention_layernorm.weight"])
        g = lin("mlp.gate_proj", h)
        x = res(x + lin("mlp.down_proj", g / (1 + np.exp(-g)) * lin("mlp.up_proj", h)))
        out.append(x[-1])
    return out, act(norm(x[-1], W["model.norm.weight"])) @ E.T


KEEP = ["single_token", "first_equals_last", "long_document", "vocabulary_edges"]
doc = []
for prompt in json.load(open(fixtures + "/prompts.json")):
    if prompt["name"] in KEEP:
        for rows_int8 in (True, False):
            got, logits = run(prompt["token_ids"], rows_int8)
            doc.append({"prompt": prompt["name"], "rows_int8": rows_int8, "rows": {
                str(i): [float("%.9g" % x) for x in got[i]] for i in (0, 1, 14, 28)},
                "every_8th_logit": [float("%.9g" % x) for x in logits[::8]]})
print("[" + ",\n".join(json.dumps(d, separators=(",", ":")) for d in doc) + "]")
