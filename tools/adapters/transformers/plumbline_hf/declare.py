"""What the side says of itself: engine.json, and the handshake of --protocol."""

import json
import os

from . import probe_names

NAME = "transformers"


def name(arithmetic):
    """What the side calls itself. Goldens are recorded by "transformers" in float32; another arithmetic is another engine."""
    what = arithmetic.get("quantize") or arithmetic.get("weights")
    if what is None and arithmetic.get("dtype") not in (None, "float32"):
        what = arithmetic["dtype"]
    return NAME if what is None else "%s (%s)" % (NAME, what)


def installed():
    """Versions of the packages at work, as far as they are there."""
    from importlib import metadata

    out = {}
    for package in ("transformers", "torch", "torchao"):
        try:
            out[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            pass
    return out


def checkpoint_config(model):
    """config.json of a folder; {} where it isn't one, or has none."""
    try:
        with open(os.path.join(model, "config.json"), encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def layers(config):
    """The number of decoder layers that a config.json says; None where it doesn't."""
    for part in (config.get("text_config") or {}, config):
        for key in ("num_hidden_layers", "n_layer", "num_layers"):
            if type(part.get(key)) is int and part[key] > 0:
                return part[key]
    return None


def checkpoint_quantization(config):
    """The arithmetic that a quantised checkpoint asks for; {} for one that isn't quantised."""
    q = config.get("quantization_config") or config.get("compression_config")
    if not q:
        return {}
    method = str(q.get("quant_method") or "unknown")
    bits = q.get("bits") or q.get("w_bit") or (8 if q.get("load_in_8bit") else 4 if q.get("load_in_4bit") else None)
    # No name that stands for an arithmetic the gate emulates: this one may differ.
    return {"weights": method + (", %s bits" % bits if bits else " (a checkpoint's own)"), "quantization": q}


def arithmetic(dtype, quantize, activation_levels=None, config=None):
    """The keys that say how numbers are computed.

    activation_levels: how many values the input of a dynamically quantised linear can take, where it was measured. int8
    has 255 or 256 of them; torch's kernels for x86 leave one bit out, and then it isn't called int8.
    """
    out = {"dtype": dtype}
    if quantize in ("dynamic-int8", "torchao-int8"):
        out["weights"] = "int8"
        if activation_levels is None or activation_levels > 200:
            out["activations"] = "int8"
        else:
            out["activations"] = "int7 in uint8"
        out["quantize"] = quantize
        out["embedding"] = dtype  # linears alone are quantised
    else:
        out.update(checkpoint_quantization(config or {}))
    return out


def describe(model, versions, arithmetic, **more):
    """The keys of engine.json beside the name; layers and logits are float32 whatever computed them."""
    out = {"version": versions.get("transformers"), "layers": "f32", "logits": "f32"}
    out.update(arithmetic)
    base = os.path.basename(os.path.realpath(model)) if os.path.isdir(model) else model
    out.update(model=base, capture="forward hooks, token by token with a KV cache, prompt and output alike")
    out.update({package: version for package, version in versions.items() if package != "transformers"})
    out.update(more)
    return {k: v for k, v in out.items() if v is not None}


def probes(names, layers):
    return "f32, every position but the last output token's: " + probe_names.by_part(names, layers) if names else None


def not_offered(missing, layers):
    """{probe: why} by reason, short."""
    reasons = {}
    for probe, why in missing.items():
        reasons.setdefault(why, []).append(probe)
    return {probe_names.by_part(names, layers): why for why, names in reasons.items()} or None
