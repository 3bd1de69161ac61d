"""The names of places in a model, as package engine has them (engine/probe.go)."""

from .problem import Problem

PARTS = ("attn_norm", "q", "k", "v", "q_rope", "k_rope", "attn_out",
         "router_logits", "router_scores", "route_ids", "route_weights", "shared_out", "resid_mid", "mlp_out", "resid_post")  # fmt: skip
ROUTER = ("router_logits", "router_scores", "route_ids", "route_weights", "shared_out")  # only layers with experts have them
STANDARD = ("k_rope", "v", "resid_mid", "resid_post")  # of what the gate asks a program for, beside embed
STREAM = ("resid_mid", "resid_post")


def block(n, part):
    return "blocks.%d.%s" % (n, part)


def row(i):
    """Row i of a layer dump."""
    return "embed" if i == 0 else block(i - 1, "resid_post")


def every(layers):
    """All names of a model with so many decoder layers, in the order of computation."""
    return ["embed", *(block(n, part) for n in range(layers) for part in PARTS), "final_norm", "logits"]


def standard(layers):
    """What the gate asks a program for: conformance.StandardProbes."""
    return ["embed", *(block(n, part) for n in range(layers) for part in STANDARD)]


def parse(text, layers):
    """The names that a list asks for, and those of them that it asks for by name.

    "all" is every place but the logits, which have a dump of their own; "residual" is the residual stream: embed and
    every layer's resid_mid and resid_post; blocks.*.PART is every layer's PART. Only of these may a model lack some.
    """
    known, wanted, named = every(layers), set(), set()
    for item in filter(None, (item.strip() for item in text.split(","))):
        if item == "all":
            wanted.update(known[:-1])
        elif item == "residual":
            wanted.update(["embed", *(block(n, part) for n in range(layers) for part in STREAM)])
        elif item.startswith("blocks.*.") and item[9:] in PARTS:
            wanted.update(block(n, item[9:]) for n in range(layers))
        elif item in known:
            wanted.add(item)
            named.add(item)
        else:
            raise Problem(
                "probes: got %r, want all, residual, embed, final_norm, logits, or blocks.N. with N from 0 to %d or * "
                "and one of %s" % (item, layers - 1, ", ".join(PARTS))
            )
    return [p for p in known if p in wanted], named


def by_part(names, layers):
    """The names as a short text: blocks.*.PART where every layer's is there, blocks.{0,2}.PART where some are."""
    where, order = {}, []
    for name in names:
        head, _, part = name.rpartition(".")
        if (bool(head), part) not in where:
            order.append((bool(head), part))
        where.setdefault((bool(head), part), []).append(head.rpartition(".")[2])
    return ", ".join(
        part if not inside else "blocks.%s.%s" % ("*" if len(at) == layers else "{%s}" % ",".join(at), part)
        for inside, part in order
        for at in [where[inside, part]]
    )
