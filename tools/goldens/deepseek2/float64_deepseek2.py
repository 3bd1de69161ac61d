"""A DeepSeek-V2 text forward of our own in float64, numpy only: how precise a golden is, and what a planted fault does to it.

Routes can be forced: which experts a token gets is a choice, and a run that chooses otherwise at a tie is no yardstick
for what follows. Their weights are this forward's own.
"""

import json

import numpy as np

LATENT_EPS = 1e-6  # of the norms of latent rows: no config names it


def silu(x):
    return x / (1 + np.exp(-x))


def softmax(x):
    y = np.exp(x - x.max(-1, keepdims=True))
    return y / y.sum(-1, keepdims=True)


def mscale(factor, m):
    return 0.1 * m * np.log(factor) + 1 if factor > 1 else 1.0


def largest(scores, k):
    """Ids of the k best of each row, ascending; the lowest id wins a tie."""
    return np.sort(np.argsort(-scores, axis=-1, kind="stable")[:, :k], axis=-1)


class Model:
    """fault(place, layer, value) may change what the forward computes; see power.py."""

    def __init__(self, folder):
        from safetensors.torch import load_file

        self.cfg = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.w = {k: v.double().numpy() for k, v in load_file(folder / "model.safetensors").items()}
        r = self.cfg["rope_parameters"]
        self.score_factor = mscale(r["factor"], r["mscale_all_dim"]) ** 2
        self.table_factor = mscale(r["factor"], r["mscale"]) / mscale(r["factor"], r["mscale_all_dim"])

    def _norm(self, x, weight, eps=None):
        eps = self.cfg["rms_norm_eps"] if eps is None else eps
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * self.w[weight + ".weight"]

    def _linear(self, x, name):
        return x @ self.w[name + ".weight"].T

    def speeds(self):
        """Angle per position of each rotary pair: the fast ones turn as they did, the slow ones a factor slower."""
        c = self.cfg["rope_parameters"]
        dim = self.cfg["qk_rope_head_dim"]
        i = np.arange(dim // 2)
        plain = c["rope_theta"] ** (-2 * i / dim)

        def pair(turns):  # the pair that turns so often within the original positions
            return dim * np.log(c["original_max_position_embeddings"] / (turns * 2 * np.pi)) / (2 * np.log(c["rope_theta"]))

        low, high = max(np.floor(pair(c["beta_fast"])), 0), min(np.ceil(pair(c["beta_slow"])), dim - 1)
        slow = np.clip((i - low) / (high - low), 0, 1)
        return plain * (1 - slow) + plain / c["factor"] * slow

    def _rotate(self, x, at, here):
        """x [positions, heads, dim]: neighbours are a pair."""
        angle = at[:, None] * here("speeds", self.speeds())
        factor = here("table_factor", self.table_factor)
        cos, sin = np.cos(angle)[:, None] * factor, np.sin(angle)[:, None] * factor
        a, b = x[..., 0::2], x[..., 1::2]
        return np.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(x.shape)

    def _attention(self, h, p, at, keep, here):
        c, n = self.cfg, len(h)
        heads, nope, value = c["num_attention_heads"], c["qk_nope_head_dim"], c["v_head_dim"]
        if c["q_lora_rank"]:
            q = self._linear(self._norm(self._linear(h, p + "q_a_proj"), p + "q_a_layernorm", LATENT_EPS), p + "q_b_proj")
        else:
            q = self._linear(h, p + "q_proj")
        q = q.reshape(n, heads, -1)
        low = here("latent", self._linear(h, p + "kv_a_proj_with_mqa"))
        latent = self._norm(low[:, : c["kv_lora_rank"]], p + "kv_a_layernorm", LATENT_EPS)
        wide = self._linear(latent, p + "kv_b_proj").reshape(n, heads, nope + value)
        key, v = low[:, None, c["kv_lora_rank"] :], wide[..., nope:]

        def whole(plain, turning):  # the rotary key is one for all heads
            return np.concatenate([plain, np.broadcast_to(turning, (n, heads, turning.shape[-1]))], -1)

        k, kr = (whole(wide[..., :nope], x) for x in (key, self._rotate(key, at, here)))
        qr = whole(q[..., :nope], self._rotate(q[..., nope:], at, here))
        for part, x in (("q", q), ("k", k), ("v", v), ("q_rope", qr), ("k_rope", kr)):
            keep(part, x)
        scale = q.shape[-1] ** -0.5 * here("score_factor", self.score_factor)
        score = np.einsum("ihd,jhd->hij", qr, kr) * scale
        score[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
        out = np.einsum("hij,jhd->ihd", softmax(score), v)
        keep("attn_out", out)
        return self._linear(out.reshape(n, -1), p + "o_proj")

    def _feed_forward(self, h, p):
        return self._linear(silu(self._linear(h, p + "gate_proj")) * self._linear(h, p + "up_proj"), p + "down_proj")

    def choose(self, scores, here):
        """Ids [positions, k], ascending."""
        c, k = self.cfg, here("per_token", self.cfg["num_experts_per_tok"])
        if c["topk_method"] == "group_limited_greedy":
            groups = scores.reshape(len(scores), c["n_group"], -1)
            kept = largest(here("group_scores", groups.max(-1)), c["topk_group"])
            mask = np.zeros(groups.shape[:2], bool)
            np.put_along_axis(mask, kept, True, 1)
            scores = np.where(np.repeat(mask, groups.shape[2], 1), scores, 0)
        return largest(scores, k)

    def _experts(self, h, p, ids, keep, here):
        logits = here("router_logits", self._linear(h, p + "gate"))
        scores = softmax(logits)
        free = self.choose(scores, here)
        ids = here("route_ids", free if ids is None else ids)
        weights = here("route_weights", (np.take_along_axis(scores, ids, 1), np.take_along_axis(logits, ids, 1)))[0]
        weights = weights * self.cfg["routed_scaling_factor"]
        out = np.zeros_like(h)
        for e in np.unique(ids):
            row, slot = np.nonzero(ids == e)
            out[row] += weights[row, slot][:, None] * self._feed_forward(h[row], f"{p}experts.{here('expert', e)}.")
        shared = self._feed_forward(h, p + "shared_experts.")
        for part, x in (("router_logits", logits), ("route_ids", ids), ("route_weights", weights), ("shared_out", shared)):
            keep(part, x)
        return here("routed", out) + here("shared", shared)

    def forward(self, ids, routes=None, start=0, fault=lambda place, layer, value: value):
        """Tensor name -> [positions, width]; routes: layer -> ids [positions, k]; start: the first token's position."""
        out = {}
        at = np.arange(len(ids)) + start
        x = self.w["model.embed_tokens.weight"][ids]
        out["embed"] = x
        for i in range(self.cfg["num_hidden_layers"]):
            p = f"model.layers.{i}."

            def keep(part, value, i=i):
                out[f"blocks.{i}.{part}"] = value.reshape(len(ids), -1)

            def here(place, value, i=i):
                return fault(place, i, value)

            h = self._norm(x, p + "input_layernorm")
            keep("attn_norm", h)
            x = x + self._attention(h, p + "self_attn.", at, keep, here)
            keep("resid_mid", x)
            h = self._norm(x, p + "post_attention_layernorm")
            if i < self.cfg["first_k_dense_replace"]:
                h = self._feed_forward(h, p + "mlp.")
            else:
                h = self._experts(h, p + "mlp.", None if routes is None else routes[i], keep, here)
            keep("mlp_out", h)
            x = x + h
            keep("resid_post", x)
        out["final_norm"] = self._norm(x, "model.norm")
        out["logits"] = self._linear(out["final_norm"], "lm_head")
        return out
