"""A Qwen2 forward of our own in float64, numpy only: the yardstick for how precise a float32 golden is.

Converting the reference to float64 would not do: its norm, softmax and rotary tables compute in float32 whatever the
weights are. Weights are the checkpoint's, which float64 holds exactly.
"""

import json

import numpy as np


class Model:
    def __init__(self, folder):
        from safetensors.torch import load_file

        self.cfg = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.w = {k: v.double().numpy() for k, v in load_file(folder / "model.safetensors").items()}
        self.head = self.cfg["hidden_size"] // self.cfg["num_attention_heads"]

    def _norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.cfg["rms_norm_eps"]) * self.w[name + ".weight"]

    def _linear(self, x, name):
        y = x @ self.w[name + ".weight"].T
        bias = self.w.get(name + ".bias")
        return y if bias is None else y + bias

    def _rotate(self, x):
        """x [positions, heads, head]: pair i is channels i and i + head/2."""
        half = self.head // 2
        theta = self.cfg["rope_parameters"]["rope_theta"]
        angle = np.arange(len(x))[:, None] * theta ** (-np.arange(half) / half)
        cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def _attention(self, x, p):
        n = len(x)
        q = self._rotate(self._linear(x, p + "q_proj").reshape(n, -1, self.head))
        k = self._rotate(self._linear(x, p + "k_proj").reshape(n, -1, self.head))
        v = self._linear(x, p + "v_proj").reshape(n, -1, self.head)
        out = np.empty_like(q)
        group = q.shape[1] // k.shape[1]
        for h in range(q.shape[1]):
            score = q[:, h] @ k[:, h // group].T / np.sqrt(self.head)
            score[np.triu_indices(n, 1)] = -np.inf
            weight = np.exp(score - score.max(-1, keepdims=True))
            out[:, h] = weight / weight.sum(-1, keepdims=True) @ v[:, h // group]
        return self._linear(out.reshape(n, -1), p + "o_proj")

    def forward(self, ids):
        """(residual stream [rows, positions, hidden], logits [positions, vocabulary]) of all positions at once."""
        x = self.w["model.embed_tokens.weight"][ids]
        rows = [x]
        for i in range(self.cfg["num_hidden_layers"]):
            p = f"model.layers.{i}."
            x = x + self._attention(self._norm(x, p + "input_layernorm"), p + "self_attn.")
            h = self._norm(x, p + "post_attention_layernorm")
            gate = self._linear(h, p + "mlp.gate_proj")
            x = x + self._linear(gate / (1 + np.exp(-gate)) * self._linear(h, p + "mlp.up_proj"), p + "mlp.down_proj")
            rows.append(x)
        head = self.w.get("lm_head.weight", self.w["model.embed_tokens.weight"])
        return np.stack(rows), self._norm(x, "model.norm") @ head.T


def relative(got, exact):
    """|got - exact| / |exact| per row, three digits: the noise of float64 itself lies far below."""
    got = np.asarray(got, dtype=np.float64)
    error = np.linalg.norm(got - exact, axis=-1) / np.linalg.norm(exact, axis=-1)
    return [float(f"{e:.3g}") for e in error]


def precision(model, ids, output_ids, layer_rows, logit_rows):
    """Errors of both dumps of one prompt; the logits of step i are those after the prompt and i recorded tokens."""
    stream, logits = model.forward(list(ids) + list(output_ids[:-1]))
    at = len(ids) - 1
    return {"layers": relative(layer_rows, stream[:, at]), "logits": relative(logit_rows, logits[at:])}
