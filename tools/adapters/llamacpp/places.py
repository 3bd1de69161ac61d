"""Which tensor of a llama.cpp graph is which place of a model."""

import re

# A probe's part of a layer: the graph's name for it, and the operations whose
# result it is. One name is given several times: Kcur-3 is the product, the sum
# with the bias, a reshape of it, and the same after RoPE; the last one in the
# order of computation counts, among those of the operations listed here.
_LAYER = {
    "attn_norm": ("attn_norm", None),
    "q": ("Qcur", ("MUL_MAT", "ADD")),
    "k": ("Kcur", ("MUL_MAT", "ADD")),
    "v": ("Vcur", ("MUL_MAT", "ADD")),
    "q_rope": ("Qcur", ("ROPE",)),
    "k_rope": ("Kcur", ("ROPE",)),
    "attn_out": ("kqv_out", None),
    "resid_mid": ("ffn_inp", None),
    "mlp_out": ("ffn_out", ("MUL_MAT",)),
    "resid_post": ("l_out", None),
}
# "inp_embd" is the name of older graphs, and of the input of newer ones, which
# no operation has made.
_WHOLE = {
    "embed": (("embd", "inp_embd"), ("GET_ROWS",)),
    "final_norm": (("result_norm",), None),
    "logits": (("result_output",), None),
}
PARTS = ("embed", *_LAYER, "final_norm", "logits")
DEFAULT_PARTS = ("embed", "k_rope", "v", "resid_mid", "resid_post")
_ROPED = ("q", "k", "q_rope", "k_rope")
_NUMBERED = re.compile(r"(.+)-([0-9]+)")


def place(name, op):
    """The probe that the result of op, under the graph's name, is; None for another tensor."""
    numbered = _NUMBERED.fullmatch(name)
    if numbered is None:
        for probe, (names, ops) in _WHOLE.items():
            if name in names and (ops is None or op in ops):
                return probe
        return None
    for part, (base, ops) in _LAYER.items():
        if numbered[1] == base and (ops is None or op in ops):
            return "blocks.%d.%s" % (int(numbered[2]), part)
    return None


def probes(parts, layers):
    """The probes of so many layers, the first ones, in the order of computation."""
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        raise ValueError("probes: got %s, want some of %s" % (", ".join(unknown), ",".join(PARTS)))
    whole = [p for p in PARTS if p in parts and p in _WHOLE]
    inside = ["blocks.%d.%s" % (n, p) for n in range(layers) for p in _LAYER if p in parts]
    return [p for p in whole if p == "embed"] + inside + [p for p in whole if p != "embed"]


def rows(layers):
    """The places of a layer dump's rows."""
    return ["embed"] + ["blocks.%d.resid_post" % n for n in range(layers)]


def part(probe):
    return probe.rsplit(".", 1)[-1]


def roped(probe):
    """True for what the two layouts of RoPE order differently."""
    return part(probe) in _ROPED


def half_split(row, head_dim):
    """Heads from the order in which RoPE turns neighbours, (0, 1), (2, 3), …, to
    Hugging Face's, where it turns channel j with channel j + head_dim/2. A llama's
    GGUF has the rows of q and k in the former: position 2j + s of a head holds
    channel j + s*head_dim/2."""
    if head_dim < 2 or head_dim % 2 or len(row) % head_dim:
        raise ValueError("a row of %d values: want whole heads of %d, an even number" % (len(row), head_dim))
    half = head_dim // 2
    return [row[at + 2 * j + s] for at in range(0, len(row), head_dim) for s in (0, 1) for j in range(half)]
