"""A Qwen3.5 text forward of our own in float64, numpy only: how precise a golden is, and what a planted fault does to it.

The delta rule is written twice, step by step and in chunks, in formulas of our own; both must agree. With
S the state [keys, values] of a head, k and q of unit length, decay a, write strength b:

    S <- a S;  S <- S + k (b (v - S'k))';  out = S'q / sqrt(keys)
"""

import json

import numpy as np

CHUNK = 64


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def stepwise(q, k, v, decay, beta, stale=()):
    """[positions, heads, …] -> outputs [positions, heads, values]; a stale position leaves no trace in the state."""
    state = np.zeros((k.shape[1], k.shape[2], v.shape[2]))
    out = np.empty_like(v)
    for t in range(len(q)):
        before = state
        state = state * decay[t][:, None, None]
        error = v[t] - np.einsum("hk,hkv->hv", k[t], state)
        state = state + np.einsum("hk,hv->hkv", k[t], beta[t][:, None] * error)
        out[t] = np.einsum("hk,hkv->hv", q[t], state)
        if t in stale:
            state = before
    return out


def chunked(q, k, v, decay, beta):
    """The same by chunks: within one, what each position writes solves a triangular system in all writes before it."""
    out = np.empty_like(v)
    for h in range(q.shape[1]):
        state = np.zeros((k.shape[2], v.shape[2]))
        for at in range(0, len(q), CHUNK):
            part = slice(at, at + CHUNK)
            Q, K, V, b = q[part, h], k[part, h], v[part, h], beta[part, h][:, None]
            total = np.cumsum(np.log(decay[part, h]))
            kept = np.tril(np.exp(np.minimum(total[:, None] - total, 0)))  # what is left at i of what j wrote
            since = np.exp(total)[:, None]
            system = np.eye(len(Q)) + np.tril(b * (K @ K.T) * kept, -1)
            writes = np.linalg.solve(system, b * (V - since * (K @ state)))
            out[part, h] = since * (Q @ state) + ((Q @ K.T) * kept) @ writes
            state = since[-1] * state + (K * kept[-1][:, None]).T @ writes
    return out


class Model:
    """fault(place, layer, value) may change what the forward computes; see power.py."""

    def __init__(self, folder):
        from safetensors.torch import load_file

        self.cfg = json.loads((folder / "config.json").read_text(encoding="utf-8"))["text_config"]
        w = {k: v.double().numpy() for k, v in load_file(folder / "model.safetensors").items()}
        self.w = {k.removeprefix("model.language_model."): v for k, v in w.items()}
        self.rule = stepwise

    def _norm(self, x, weight):
        """Weights are deviations from 1."""
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.cfg["rms_norm_eps"])
        return y * (1 + self.w[weight + ".weight"])

    def _rotate(self, x):
        """x [positions, heads, dim]: the first channels turn, in pairs half of them apart; the rest stay."""
        rope = self.cfg["rope_parameters"]
        turning = int(x.shape[-1] * rope["partial_rotary_factor"])
        half = turning // 2
        angle = np.arange(len(x))[:, None] * rope["rope_theta"] ** (-np.arange(half) / half)
        cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
        a, b, rest = x[..., :half], x[..., half:turning], x[..., turning:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin, rest], -1)

    def _full(self, h, p, keep, fault):
        n, dim = len(h), self.cfg["head_dim"]
        both = (h @ self.w[p + "q_proj.weight"].T).reshape(n, -1, 2 * dim)  # per head: its query, then its gate
        q = self._norm(both[..., :dim], p + "q_norm")
        k = self._norm((h @ self.w[p + "k_proj.weight"].T).reshape(n, -1, dim), p + "k_norm")
        v = (h @ self.w[p + "v_proj.weight"].T).reshape(n, -1, dim)
        qr, kr = self._rotate(q), self._rotate(k)
        for part, value in (("q", q), ("k", k), ("v", v), ("q_rope", qr), ("k_rope", kr)):
            keep(part, value)
        ahead = np.triu(np.ones((n, n), bool), 1)
        out = np.empty_like(q)
        for i in range(q.shape[1]):
            kv = i // (q.shape[1] // k.shape[1])
            score = np.where(ahead, -np.inf, qr[:, i] @ kr[:, kv].T / np.sqrt(dim))
            weight = np.exp(score - score.max(-1, keepdims=True))
            out[:, i] = weight / weight.sum(-1, keepdims=True) @ v[:, kv]
        out = out * fault("attention_gate", sigmoid(both[..., dim:]))
        keep("attn_out", out)
        return out.reshape(n, -1) @ self.w[p + "o_proj.weight"].T

    def _linear(self, h, p, keep, fault):
        c, n = self.cfg, len(h)
        keys, values = c["linear_num_key_heads"], c["linear_num_value_heads"]
        taps = self.w[p + "conv1d.weight"][:, 0]
        seen = np.concatenate([np.zeros((taps.shape[1] - 1, len(taps))), h @ self.w[p + "in_proj_qkv.weight"].T])
        windows = np.lib.stride_tricks.sliding_window_view(seen, taps.shape[1], axis=0)  # [positions, channels, taps]
        mixed = silu((fault("conv_windows", windows) * taps).sum(-1))
        wide = keys * c["linear_key_head_dim"]
        q, k, v = np.split(mixed, [wide, 2 * wide], axis=1)
        q, k = (np.repeat(x.reshape(n, keys, -1), values // keys, axis=1) for x in (q, k))
        q, k = (x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6) for x in (q, k))
        beta = fault("beta", sigmoid(h @ self.w[p + "in_proj_b.weight"].T))
        speed = np.logaddexp(0, h @ self.w[p + "in_proj_a.weight"].T + self.w[p + "dt_bias"])
        decay = fault("decay", np.exp(-np.exp(self.w[p + "A_log"]) * speed))
        rule = fault("rule", self.rule)
        out = rule(q / np.sqrt(q.shape[-1]), k, v.reshape(n, values, -1), decay, beta)
        out = out / np.sqrt((out * out).mean(-1, keepdims=True) + c["rms_norm_eps"]) * self.w[p + "norm.weight"]
        out = out * fault("linear_gate", silu((h @ self.w[p + "in_proj_z.weight"].T).reshape(out.shape)))
        keep("attn_out", out)
        return out.reshape(n, -1) @ self.w[p + "out_proj.weight"].T

    def forward(self, ids, fault=lambda place, layer, value: value):
        """Tensor name -> [positions, width], all positions."""
        out = {}
        x = self.w["embed_tokens.weight"][ids]
        out["embed"] = x
        for i, kind in enumerate(self.cfg["layer_types"]):
            p = f"layers.{i}."

            def keep(part, value, i=i):
                out[f"blocks.{i}.{part}"] = value.reshape(len(ids), -1)

            def here(place, value, i=i):
                return fault(place, i, value)

            h = self._norm(x, p + "input_layernorm")
            keep("attn_norm", h)
            linear = kind == "linear_attention"
            x = x + (self._linear(h, p + "linear_attn.", keep, here) if linear else self._full(h, p + "self_attn.", keep, here))
            keep("resid_mid", x)
            h = self._norm(x, p + "post_attention_layernorm")
            gate, up, down = (self.w[f"{p}mlp.{x}_proj.weight"].T for x in ("gate", "up", "down"))
            h = (silu(h @ gate) * (h @ up)) @ down
            keep("mlp_out", h)
            x = x + h
            keep("resid_post", x)
        out["final_norm"] = self._norm(x, "norm")
        out["logits"] = out["final_norm"] @ self.w["lm_head.weight"].T
        return out
