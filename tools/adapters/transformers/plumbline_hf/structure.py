"""Finds the places of a decoder-only model by its structure: what transformers' families have in common.

Rows of a layer dump need the list of decoder layers and the final norm; without them there is no dump. Places inside a
layer are found by the names that families use, and what a family fuses, or has in another order, is not offered, with
the reason. What names alone can't tell is tried on one token (capture.py).
"""

from .probe_names import block, every
from .problem import LayoutError

NORMS = ("norm", "ln_f", "final_layernorm", "final_layer_norm", "norm_f", "final_norm")
ATTENTION = ("self_attn", "attention", "attn", "self_attention")
MLP = ("mlp", "feed_forward", "block_sparse_moe", "ffn")
Q, K, V = ("q_proj", "wq", "query"), ("k_proj", "wk", "key"), ("v_proj", "wv", "value")
FUSED = ("qkv_proj", "query_key_value", "c_attn", "Wqkv", "in_proj")
O = ("o_proj", "out_proj", "c_proj", "dense", "wo")  # noqa: E741
# Norms of a family that sit between a projection and RoPE.
QK_NORMS = ("q_norm", "k_norm", "q_layernorm", "k_layernorm", "query_layernorm", "key_layernorm")
BEFORE_MLP = ("post_attention_layernorm", "ln_2", "ffn_norm", "post_attn_norm", "norm_2")


class Structure:
    """layers: the decoder layers; norm: the final norm; places and missing: {probe: …}, of each probe one.

    A place is (module, "in" or "out", the module's name), or None for what no module has at its edge: queries and keys
    behind RoPE, and the logits.
    """

    def __init__(self, layers, norm, attention):
        self.layers, self.norm, self.attention = layers, norm, attention
        self.places, self.missing = {}, {}


def text_config(config):
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def children(module):
    return dict(module.named_children())


def first(module, names):
    have = children(module) if module is not None else {}
    return next(((have[n], n) for n in names if n in have), (None, None))


def find(model):
    what = type(model).__name__
    n = _count(model, what)
    decoder = model.get_decoder() if hasattr(model, "get_decoder") else model
    prefix, name, decoder, layers = _layers(decoder, n, what)
    norm, norm_name = first(decoder, NORMS)
    if norm is None:
        raise LayoutError(
            "%s: got no final norm beside %s (there are %s), want one of %s"
            % (what, name, ", ".join(children(decoder)), ", ".join(NORMS))
        )
    layers = list(layers)
    s = Structure(layers, norm, [first(layer, ATTENTION)[0] for layer in layers])
    s.places["embed"] = (layers[0], "in", "%s%s.0" % (prefix, name))  # what the stream begins with, scaled and placed
    rotary = any("rotary" in path for path, _ in model.named_modules())
    for i, layer in enumerate(layers):
        _inside(s, i, layer, "%s%s.%d" % (prefix, name, i), rotary)
    s.places["final_norm"] = (norm, "out", prefix + norm_name)
    s.places["logits"] = None
    for probe in every(n):
        if probe not in s.places:
            s.missing.setdefault(probe, "places of a router and of its experts are not looked for")
    return s


def _count(model, what):
    config = text_config(model.config)
    for key in ("num_hidden_layers", "n_layer", "num_layers"):
        n = getattr(config, key, None)
        if isinstance(n, int) and n > 0:
            return n
    raise LayoutError("%s: config: got no num_hidden_layers, want the number of decoder layers" % what)


def _layers(decoder, n, what, prefix="", depth=2):
    """The one list of n modules among the children, or one level below."""
    found = [(name, c) for name, c in decoder.named_children() if hasattr(c, "__len__") and len(c) == n]
    named = [f for f in found if f[0] in ("layers", "h", "blocks", "block")]
    if len(named) == 1 or len(found) == 1:
        name, layers = (named or found)[0]
        return prefix, name, decoder, layers
    if depth > 1 and not found:
        for name, child in decoder.named_children():
            try:
                return _layers(child, n, what, prefix + name + ".", depth - 1)
            except LayoutError:
                pass
    raise LayoutError(
        "%s: got %s in %s (its parts: %s), want one list of the %d decoder layers, as model.layers is in Llama"
        % (what, "no list" if not found else "several lists of that length", type(decoder).__name__,
           ", ".join(children(decoder)) or "none", n)
    )  # fmt: skip


def _inside(s, i, layer, path, rotary):
    def put(part, module, side, name):
        s.places[block(i, part)] = (module, side, name)

    def lack(parts, why):
        for part in parts.split():
            s.missing[block(i, part)] = why

    put("resid_post", layer, "out", path)
    attention, name = first(layer, ATTENTION)
    if attention is None:
        lack("attn_norm q k v q_rope k_rope attn_out", "no attention found: looked for %s" % ", ".join(ATTENTION))
    else:
        at = "%s.%s" % (path, name)
        found = {part: first(attention, names) for part, names in (("q", Q), ("k", K), ("v", V))}
        fused, fused_name = first(attention, FUSED)
        for part, (module, name) in found.items():
            if module is not None:
                put(part, module, "out", "%s.%s" % (at, name))
            elif fused is not None:
                lack(part, "fused with others in %s" % fused_name)
            else:
                names = {"q": Q, "k": K, "v": V}[part]
                lack(part, "looked for %s, or one of %s" % (", ".join(names), ", ".join(FUSED)))
        between = first(attention, QK_NORMS)[1]
        for part in ("q", "k"):
            if between and s.places.pop(block(i, part), None):
                lack(part, "%s lies between the projection and RoPE" % between)
        source, name = found["q"] if found["q"][0] is not None else (fused, fused_name)
        if source is not None:
            put("attn_norm", source, "in", "%s.%s" % (at, name))
        else:
            lack("attn_norm", "it is the input of q, which was not found")
        out, name = first(attention, O)
        if out is not None:
            put("attn_out", out, "in", "%s.%s" % (at, name))
        else:
            lack("attn_out", "looked for %s" % ", ".join(O))
        for part in ("q_rope", "k_rope"):
            if rotary:
                s.places[block(i, part)] = None
            else:
                lack(part, "no rotary embedding found")
    _mlp(layer, path, put, lack)


def _mlp(layer, path, put, lack):
    mlp, mlp_name = first(layer, MLP)
    if mlp is None:
        return lack("resid_mid mlp_out", "no MLP found: looked for %s" % ", ".join(MLP))
    # With a norm behind the MLP, what is added to the stream is the norm's.
    behind, name = first(layer, ("post_feedforward_layernorm", "post_mlp_layernorm"))
    put("mlp_out", behind or mlp, "out", "%s.%s" % (path, name or mlp_name))
    before, name = first(layer, ("pre_feedforward_layernorm", "pre_mlp_layernorm"))
    if before is None and behind is None:
        before, name = first(layer, BEFORE_MLP)
        if before is None:
            return lack("resid_mid", "looked for the norm in front of the MLP: %s" % ", ".join(BEFORE_MLP))
    elif before is None:  # no norm in front: the MLP reads the stream
        before, name = mlp, mlp_name
    put("resid_mid", before, "in", "%s.%s" % (path, name))
