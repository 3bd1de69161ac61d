"""Which places of a DeepSeek-V2 model are recorded, under the names of Plumbline's probes.

q, k and v are those of all heads: of a key the part that turns is the same in each. q_rope and k_rope have their rotary
pairs as neighbours, as the checkpoint's rows lie; the model's official file turns them into halves first, which no score
sees. A route's ids are in ascending order, its weights in the order of the ids: transformers' own order means nothing.
"""

import functools

STAGES = ("attn_norm", "q", "k", "v", "q_rope", "k_rope", "attn_out", "resid_mid", "mlp_out")
ROUTES = ("router_logits", "route_ids", "route_weights")


def detail(layers):
    """The layers whose inner stages are recorded: the first ones of each kind, one in the middle, the last."""
    return sorted({0, 1, layers // 2, layers - 1})


def names(config, dtype):
    """The recorded tensors; bfloat16 has the stream, routes, and what attention and the feed-forward put out."""
    out, layers = ["embed", "final_norm", "logits"], config.num_hidden_layers
    for n in range(layers):
        routed = n >= config.first_k_dense_replace
        parts = ["resid_post", *(ROUTES if routed else ())]
        if n in detail(layers):
            parts += STAGES if dtype == "float32" else ("attn_out", "mlp_out")
            parts += ["shared_out"] if routed and dtype == "float32" else []
        out += [f"blocks.{n}.{p}" for p in parts]
    return out


def everywhere(name):
    """Whether a tensor has a row for each position: routes, so that a run can be made to follow them."""
    return name.rpartition(".")[2] in ROUTES


def ordered(logits, weights, ids):
    ids, order = ids.sort(dim=-1)
    return logits, ids, weights.gather(-1, order)


def tap(model, taps):
    """Has taps keep everything that either dtype records. What forces routes must be there before."""
    import torch
    from transformers.models.deepseek_v2 import modeling_deepseek_v2

    c, running, plain, shape = model.config, [], {}, {}
    nope = c.qk_nope_head_dim
    taps.output(model.model.embed_tokens, (-1, "embed"))
    taps.output(model.model.norm, (-1, "final_norm"))
    for n, layer in enumerate(model.model.layers):
        attention = layer.self_attn
        taps.before(layer, functools.partial(running.append, n))
        taps.output(layer.input_layernorm, (n, "attn_norm"))
        taps.input(attention.o_proj, (n, "attn_out"))
        taps.input(layer.post_attention_layernorm, (n, "resid_mid"))
        taps.output(layer.mlp, (n, "mlp_out"))
        taps.output(layer, (n, "resid_post"))

        def unfolded(out, n=n):
            heads = out.unflatten(-1, (c.num_attention_heads, -1))
            plain["k"], shape["run"] = heads[..., :nope], out.shape[:2]
            taps.keep((n, "v"), heads[..., nope:])

        taps.after(attention.kv_b_proj, unfolded)
        queries = attention.q_proj if c.q_lora_rank is None else attention.q_b_proj

        def asked(out, n=n):
            heads = out.unflatten(-1, (c.num_attention_heads, -1))
            plain["q"] = heads[..., :nope]
            taps.keep((n, "q"), heads)

        taps.after(queries, asked)
        if n >= c.first_k_dense_replace:
            taps.output(layer.mlp.shared_experts, (n, "shared_out"))

            def routed(out, n=n):
                for part, value in zip(ROUTES, ordered(*out)):
                    taps.keep((n, part), value.unflatten(0, shape["run"]))

            taps.after(layer.mlp.gate, routed)

    def rotated(args, out):
        def heads(part, turning):
            turning = turning.transpose(1, 2).expand(-1, -1, c.num_attention_heads, -1)
            return torch.cat([plain[part], turning], -1)

        n = running[-1]
        taps.keep((n, "k"), heads("k", args[1]))
        taps.keep((n, "q_rope"), heads("q", out[0]))
        taps.keep((n, "k_rope"), heads("k", out[1]))

    taps.function(modeling_deepseek_v2, "apply_rotary_emb", rotated)
