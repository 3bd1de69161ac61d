"""Runs a model one token a call with its own KV cache, and keeps what it computes.

One run gives everything: the rows at the last prompt token, the logits that chose each output token, and the places asked
for at every position. A dump that isn't the residual stream is refused: what comes out of each layer must be, bit for bit,
what goes into the next one, and at last into the final norm.
"""

from array import array
from dataclasses import dataclass, field

import torch

from . import probe_names, structure
from .problem import LayoutError, Problem
from .tap import Tap


@dataclass
class Captured:
    rows: list = field(default_factory=list)
    logits: list = field(default_factory=list)
    output_ids: list = field(default_factory=list)
    probes: dict = field(default_factory=dict)


def one_row(key, value):
    """The only row of a tensor, with its own dtype; a copy, since later operations may write into the same memory."""
    if not isinstance(value, torch.Tensor) or value.ndim < 2 or value.numel() != value.shape[-1]:
        got = "shape %s" % list(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        raise LayoutError("%s: got %s, want one row for one token" % (key, got))
    return value.detach().reshape(-1).clone()


def heads_row(key, value):
    """The newest position of [1, heads, positions, width], heads concatenated."""
    if not isinstance(value, torch.Tensor) or value.ndim != 4 or value.shape[0] != 1:
        got = "shape %s" % list(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        raise LayoutError("%s: got %s, want [1, heads, positions, width]" % (key, got))
    return value[0, :, -1, :].detach().reshape(-1).clone()


def floats(row):
    """float32 values, which hold those of every narrower type."""
    out = array("f")
    out.frombytes(row.float().cpu().contiguous().numpy().tobytes())
    return out


class Queries:
    """Keeps the queries, which no module returns, on their way into transformers' attention function."""

    def __init__(self, model, attention, tap):
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

        self.table, self.tap = ALL_ATTENTION_FUNCTIONS, tap
        self.name = getattr(structure.text_config(model.config), "_attn_implementation", None)
        self.layer = {id(m): i for i, m in enumerate(attention) if m is not None}

    def __enter__(self):
        self.inner = self.table[self.name] if self.name in self.table else None
        if self.inner is not None:
            self.own = self.name in getattr(self.table, "_local_mapping", {})
            self.table[self.name] = self._call
        return self

    def __exit__(self, *_):
        if self.inner is not None and self.own:
            self.table[self.name] = self.inner
        elif self.inner is not None:
            del self.table[self.name]

    def _call(self, module, query, *args, **kwargs):
        i = self.layer.get(id(module))
        if i is not None:
            key = probe_names.block(i, "q_rope")
            self.tap.keep(key, heads_row(key, query))
        return self.inner(module, query, *args, **kwargs)


class Dumper:
    """A loaded model, with the places that it turned out to have."""

    def __init__(self, model):
        self.model, self.what = model, type(model).__name__
        self.s = structure.find(model)
        self.layers = len(self.s.layers)
        self.vocab = model.get_input_embeddings().weight.shape[0]
        config = structure.text_config(model.config)
        self.most = getattr(config, "max_position_embeddings", None)
        eos = getattr(model.generation_config, "eos_token_id", None)
        self.stop = [] if eos is None else list(eos) if isinstance(eos, (list, tuple)) else [eos]
        self.notes = []
        self.missing = dict(self.s.missing)
        self._try(config)
        self.offered = [p for p in probe_names.every(self.layers) if p not in self.missing]

    def _try(self, config):
        """Finds out on one token what names can't tell."""
        wanted = [p for p in probe_names.every(self.layers) if p not in self.missing]
        with torch.no_grad(), _Pass(self, wanted, lenient=True) as one:
            rows = one.step(self.model.config.bos_token_id if self._fits(self.model.config.bos_token_id) else 0)
        self.missing.update(one.failed)
        heads, kv = config.num_attention_heads, getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // heads
        value = getattr(config, "v_head_dim", None) or width
        wants = {"q": heads * width, "q_rope": heads * width, "attn_out": heads * value,
                 "k": kv * width, "k_rope": kv * width, "v": kv * value}  # fmt: skip
        broken = []
        for i in range(self.layers):
            at = {part: rows.get(probe_names.block(i, part)) for part in probe_names.PARTS}
            for part, row in at.items():
                want = wants.get(part, config.hidden_size)
                if row is not None and len(row) != want:
                    self._lack(i, part, "got %d values a token, want %d" % (len(row), want))
            if at["resid_mid"] is not None and at["mlp_out"] is not None:
                if not torch.equal(at["resid_mid"] + at["mlp_out"], at["resid_post"]):
                    broken.append(i)
        # In every layer: the family adds up in another way. In one: that layer is odd, and the gate's to judge.
        if len(broken) == self.layers:
            for i in range(self.layers):
                for part in ("resid_mid", "mlp_out"):
                    self._lack(i, part, "resid_mid and mlp_out do not add up to resid_post in this family")
        elif broken:
            self.notes.append("resid_mid and mlp_out do not add up to resid_post in layers %s" % ", ".join(map(str, broken)))

    def _fits(self, token):
        return isinstance(token, int) and 0 <= token < self.vocab

    def _lack(self, i, part, why):
        self.missing[probe_names.block(i, part)] = why

    def wanted(self, text):
        """The probes of a list; one that is asked for by name and isn't offered is a Problem."""
        names, named = probe_names.parse(text or "", self.layers)
        for name in names:
            if name in named and name in self.missing:
                raise Problem("probes: %s: not offered by %s: %s" % (name, self.what, self.missing[name]))
        return [n for n in names if n not in self.missing]

    def check(self, ids, max_new):
        for i, token in enumerate(ids):
            if not self._fits(token):
                raise Problem("token_ids[%d]: got %d, want below %d, the rows of the embedding" % (i, token, self.vocab))
        if self.most and len(ids) + max_new > self.most:
            raise Problem("token_ids: got %d and %d to decode, want at most %d positions" % (len(ids), max_new, self.most))

    def run(self, ids, stop, max_new, probes=()):
        """The last token of an output is chosen and not run, so that no place has its position."""
        self.check(ids, max_new)
        out = Captured(probes={p: [] for p in probes})
        with torch.no_grad(), _Pass(self, probes) as one:

            def step(token):
                rows = one.step(token)
                for p in probes:
                    out.probes[p].append(floats(rows[p]))
                return rows

            for token in ids:
                rows = step(token)
            out.rows = [floats(rows[probe_names.row(i)]) for i in range(self.layers + 1)]
            while len(out.output_ids) < max_new:
                row = rows["logits"]
                token = int(row.float().cpu().numpy().argmax())  # numpy's is the lowest index on ties, torch's promises nothing
                out.logits.append(floats(row))
                out.output_ids.append(token)
                if token in stop or len(out.output_ids) == max_new:
                    break
                rows = step(token)
        return out


class _Pass:
    """Forward passes of one token each over one cache. lenient: a place that can't be had goes to failed."""

    def __init__(self, dumper, probes, lenient=False):
        self.d, s = dumper, dumper.s
        self.lenient, self.failed, self.cache, self.length = lenient, {}, None, 0
        self.probes = list(probes)
        rows = {probe_names.row(i) for i in range(dumper.layers + 1)}
        places = {p: s.places[p] for p in [*self.probes, *rows] if s.places.get(p)}
        for i, layer in enumerate(s.layers[1:], 1):
            places["the input of layer %d" % i] = (layer, "in", "layer %d" % i)
        places["the input of the final norm"] = (s.norm, "in", "the final norm")
        self.tap = Tap(places, self._take)
        self.queries = Queries(dumper.model, s.attention, self.tap)
        self.want_queries = any(p.endswith(".q_rope") for p in self.probes)

    def __enter__(self):
        self.tap.__enter__()
        if self.want_queries:
            self.queries.__enter__()
        return self

    def __exit__(self, *exc):
        if self.want_queries:
            self.queries.__exit__(*exc)
        self.tap.__exit__(*exc)

    def _take(self, key, value):
        if key.endswith(".q_rope"):
            return value
        try:
            return one_row(key, value)
        except LayoutError as e:
            if not self.lenient or key in ("embed", "final_norm") or key.endswith("resid_post") or key.startswith("the input"):
                raise
            self.failed[key] = str(e)
            return None

    def step(self, token):
        """{key: row} of one token, the logits and the stream's rows among them."""
        model = self.d.model
        self.tap.begin()
        out = model(input_ids=torch.tensor([[token]], device=model.device), past_key_values=self.cache, use_cache=True)
        rows = self.tap.end()
        self.cache = getattr(out, "past_key_values", None)
        self.length += 1
        if self.cache is None:
            raise LayoutError("%s: got no past_key_values, want a KV cache" % self.d.what)
        held = _positions(self.cache)
        if held not in (None, self.length):
            raise LayoutError("%s: the cache holds %d positions, want %d" % (self.d.what, held, self.length))
        rows["logits"] = one_row("logits", out.logits)
        for i in range(1, self.d.layers + 1):
            into = "the input of " + ("layer %d" % i if i < self.d.layers else "the final norm")
            # bits, for a NaN isn't equal to itself
            if not _same(rows[probe_names.row(i)], rows.pop(into)):
                raise LayoutError(
                    "%s: %s is not what layer %d put out: no plain residual stream, want one" % (self.d.what, into, i - 1)
                )
        for p in self.probes:
            if p.endswith(".k_rope"):
                rows[p] = self._or_failed(p, lambda p=p: heads_row(p, self._keys(int(p.split(".")[1]))))
            elif p not in rows:
                rows[p] = self._or_failed(p, self._none)
        return rows

    def _keys(self, i):
        layers = getattr(self.cache, "layers", None) or []
        keys = getattr(layers[i], "keys", None) if i < len(layers) else None
        if keys is None:
            raise LayoutError("got no keys in the cache")
        return keys

    def _none(self):
        raise LayoutError(
            "the attention function %r does not go through transformers' table of them, where queries are seen" % self.queries.name
        )

    def _or_failed(self, key, get):
        try:
            return get()
        except LayoutError as e:
            if not self.lenient:
                raise
            self.failed[key] = str(e)
            return None


def _positions(cache):
    """None for a cache that can't say it: one of states in place of positions."""
    try:
        return cache.get_seq_length()
    except (AttributeError, NotImplementedError, ValueError):
        return None


def _same(a, b):
    return a.shape == b.shape and torch.equal(a.view(torch.uint8), b.view(torch.uint8))
