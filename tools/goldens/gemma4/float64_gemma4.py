"""A Gemma 4 text forward of our own in float64, numpy only: how precise the float32 golden is."""

import json

import numpy as np


class Model:
    def __init__(self, folder):
        from safetensors.torch import load_file

        self.cfg = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.w = {k: v.double().numpy() for k, v in load_file(folder / "model.safetensors").items()}

    def _norm(self, x, weight=None):
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.cfg["rms_norm_eps"])
        return y if weight is None else y * self.w[weight + ".weight"]

    def _rotate(self, x, kind):
        """x [positions, heads, dim]; pairs behind the turning ones stay."""
        c = self.cfg["rope_parameters"][kind]
        half = x.shape[-1] // 2
        turning = int(c.get("partial_rotary_factor", 1.0) * half)
        speed = np.where(np.arange(half) < turning, c["rope_theta"] ** (-np.arange(half) / half), 0.0)
        angle = np.arange(len(x))[:, None] * speed
        cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def _attention(self, h, p, kind, keep):
        n, glob = len(h), kind == "full_attention"
        dim = self.cfg["global_head_dim" if glob else "head_dim"]
        raw = {x: (h @ self.w[p + x + "_proj.weight"].T).reshape(n, -1, dim) for x in "qkv" if p + x + "_proj.weight" in self.w}
        q, k, v = self._norm(raw["q"], p + "q_norm"), self._norm(raw["k"], p + "k_norm"), self._norm(raw.get("v", raw["k"]))
        keep("q", q), keep("k", k), keep("v", v)
        qr, kr = self._rotate(q, kind), self._rotate(k, kind)
        back = np.arange(n)[:, None] - np.arange(n)
        hidden = (back < 0) | (back >= (n if glob else self.cfg["sliding_window"]))
        group = q.shape[1] // k.shape[1]
        out = np.empty_like(q)
        for i in range(q.shape[1]):
            score = np.where(hidden, -np.inf, qr[:, i] @ kr[:, i // group].T)
            weight = np.exp(score - score.max(-1, keepdims=True))
            out[:, i] = weight / weight.sum(-1, keepdims=True) @ v[:, i // group]
        keep("attn_out", out)
        return out.reshape(n, -1) @ self.w[p + "o_proj.weight"].T

    def forward(self, ids):
        """Tensor name -> [positions, width], all positions."""
        out = {}
        x = self.w["model.embed_tokens.weight"][ids] * np.sqrt(self.cfg["hidden_size"])
        out["embed"] = x
        for i, kind in enumerate(self.cfg["layer_types"]):
            p = f"model.layers.{i}."

            def keep(part, value, i=i):
                out[f"blocks.{i}.{part}"] = value.reshape(len(ids), -1)

            h = self._attention(self._norm(x, p + "input_layernorm"), p + "self_attn.", kind, keep)
            x = x + self._norm(h, p + "post_attention_layernorm")
            h = self._norm(x, p + "pre_feedforward_layernorm")
            g = h @ self.w[p + "mlp.gate_proj.weight"].T
            g = 0.5 * g * (1 + np.tanh(np.sqrt(2 / np.pi) * (g + 0.044715 * g**3)))
            h = (g * (h @ self.w[p + "mlp.up_proj.weight"].T)) @ self.w[p + "mlp.down_proj.weight"].T
            x = (x + self._norm(h, p + "post_feedforward_layernorm")) * self.w[p + "layer_scalar"]
            keep("resid_post", x)
        cap = self.cfg["final_logit_softcapping"]
        out["logits"] = cap * np.tanh(self._norm(x, "model.norm") @ self.w["model.embed_tokens.weight"].T / cap)
        return out

    def precision(self, ids, entry, tensors):
        """Tensor name -> the largest relative L2 of a recorded row from this forward's, three digits."""
        exact = self.forward(ids)
        out = {}
        for name, got in tensors.items():
            want = exact[name][entry["tokens"] - 1 :] if name == "logits" else exact[name][entry["positions"]]
            error = np.linalg.norm(got.double().numpy() - want, axis=-1) / np.linalg.norm(want, axis=-1)
            out[name] = float(f"{error.max():.3g}")
        return out
