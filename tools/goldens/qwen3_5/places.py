"""Which places of a Qwen3.5 model are recorded, under the names of Plumbline's probes.

q and k are behind their norms and before rotation. attn_out is what the mixer's last projection gets: of full attention
the heads behind the output gate, of DeltaNet the heads behind their gated norm.
"""

import functools

from taps import Taps

DETAIL = (3, 4)  # a layer of each kind whose inner stages are recorded too
STAGES = ("attn_norm", "resid_mid", "mlp_out")
HEADS = ("q", "k", "v", "q_rope", "k_rope")


def names(kinds, dtype):
    """The recorded tensors; bfloat16 has the stream and what the mixers put out."""
    out = ["embed", "final_norm", "logits"]
    for n, kind in enumerate(kinds):
        parts = ["attn_out", "resid_post"]
        if dtype == "float32":
            parts += STAGES if n in DETAIL else ()
            parts += HEADS if kind == "full_attention" else ()
        out += [f"blocks.{n}.{p}" for p in parts]
    return out


def tap(model):
    """Taps on everything that either dtype records."""
    from transformers.models.qwen3_5 import modeling_qwen3_5

    text, taps, running = model.model.language_model, Taps(), []
    taps.output(text.embed_tokens, (-1, "embed"))
    taps.output(text.norm, (-1, "final_norm"))
    for n, layer in enumerate(text.layers):
        taps.before(layer, functools.partial(running.append, n))
        taps.output(layer.input_layernorm, (n, "attn_norm"))
        taps.input(layer.post_attention_layernorm, (n, "resid_mid"))
        taps.output(layer.mlp, (n, "mlp_out"))
        taps.output(layer, (n, "resid_post"))
        if layer.block_type == "linear_attention":
            taps.input(layer.linear_attn.out_proj, (n, "attn_out"))
            continue
        taps.input(layer.self_attn.o_proj, (n, "attn_out"))
        for module, part in ((layer.self_attn.q_norm, "q"), (layer.self_attn.k_norm, "k"), (layer.self_attn.v_proj, "v")):
            taps.output(module, (n, part))

    def rotated(_args, both):
        for part, value in zip(("q_rope", "k_rope"), both):
            taps.keep((running[-1], part), value.transpose(1, 2))

    taps.function(modeling_qwen3_5, "apply_rotary_pos_emb", rotated)
    return taps
