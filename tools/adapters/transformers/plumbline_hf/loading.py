"""Loads a model of transformers, and quantises it where that is asked for."""

import inspect
import os
import warnings

from plumbline_adapter import packages

from .problem import Problem

REQUIREMENTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "requirements.txt")

QUANTIZE = ("none", "dynamic-int8", "torchao-int8")
DTYPES = ("float32", "bfloat16", "float16")


def need(scheme="none"):
    """Raises before the work where a package isn't installed that it needs."""
    packages.need(["torch", "transformers"], REQUIREMENTS, "--no-deps")
    if scheme == "torchao-int8":
        packages.need(["torchao"], REQUIREMENTS, "--no-deps", "without it: --quantize dynamic-int8 --quantized-engine qnnpack")


def layers(source):
    """The number of decoder layers of a model of the hub, from its config; None where it can't be had."""
    try:
        need()
        from transformers import AutoConfig

        return AutoConfig.from_pretrained(source).get_text_config().num_hidden_layers
    except (Problem, OSError, ValueError, AttributeError):
        return None


def model(source, dtype, device):
    import torch
    from transformers import AutoModelForCausalLM

    try:
        m, info = AutoModelForCausalLM.from_pretrained(source, dtype=getattr(torch, dtype), output_loading_info=True)
    except (OSError, ValueError, ImportError) as e:
        raise Problem("%s: %s" % (source, e)) from e
    for key in ("missing_keys", "mismatched_keys", "error_msgs"):  # what is missing would be random numbers
        if info.get(key):
            raise Problem("%s: %s: got %s, want none" % (source, key, ", ".join(map(str, sorted(info[key], key=str)[:5]))))
    m.eval()
    return m if device == "cpu" else m.to(device)


def quantize(m, scheme, engine=None):
    """Quantises the linears, the head included, in place.

    Returns the number of values that the input of one can take where that depends on torch's kernels, and what else
    there is to say of it.
    """
    if scheme == "none":
        return None, {}
    import torch

    if getattr(m.config, "quantization_config", None) is not None:
        raise Problem("--quantize %s: got a checkpoint that is quantised already, want --quantize none" % scheme)
    linears = sum(type(x) is torch.nn.Linear for x in m.modules())
    if not linears:
        raise Problem("--quantize %s: got no torch.nn.Linear in %s, want some" % (scheme, type(m).__name__))
    if scheme == "torchao-int8":
        from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

        known = inspect.signature(Int8DynamicActivationInt8WeightConfig).parameters
        # Otherwise it sets the compiler's options, which are the process's.
        quantize_(m, Int8DynamicActivationInt8WeightConfig(**({"set_inductor_config": False} if "set_inductor_config" in known else {})))
        return None, {"linears": linears, "scales": "weights: output channel; activations: token"}
    if next(m.parameters()).dtype != torch.float32:
        raise Problem("--quantize dynamic-int8: got %s, want --dtype float32" % next(m.parameters()).dtype)
    if engine:
        if engine not in torch.backends.quantized.supported_engines:
            raise Problem(
                "--quantized-engine: got %r, want one of %s" % (engine, ", ".join(torch.backends.quantized.supported_engines))
            )
        torch.backends.quantized.engine = engine
    _dynamic(m)
    more = {"linears": linears, "engine": torch.backends.quantized.engine}
    return activation_levels(), {**more, "scales": "weights: output channel; activations: call, which is a token here"}


def _dynamic(m):
    import torch
    from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its deprecation is the user's to read elsewhere
        return quantize_dynamic(m, {torch.nn.Linear: per_channel_dynamic_qconfig}, inplace=True)


def activation_levels(n=1024):
    """How many values a dynamically quantised linear of the engine in use can tell apart in its input."""
    import torch

    one = torch.nn.Sequential(torch.nn.Linear(n, n, bias=False))
    with torch.no_grad():
        one[0].weight.copy_(torch.eye(n))
        return len(set(_dynamic(one)(torch.linspace(-1, 1, n)[None])[0].tolist()))


class Words:
    """Text to ids and back, by the model's own tokenizer and chat template; loaded when first used."""

    def __init__(self, source):
        self.source, self._tokenizer = source, None

    def _load(self):
        if self._tokenizer is None:
            need()
            from transformers import AutoTokenizer

            try:
                self._tokenizer = AutoTokenizer.from_pretrained(self.source)
            except Exception as e:  # its kinds are many, and it may not be there
                raise Problem("%s: tokenizer: %s" % (self.source, str(e).strip().split("\n")[0])) from e
        return self._tokenizer

    def text(self, system, prompt):
        t = self._load()
        if not t.chat_template:
            raise Problem("prompt: the model has no chat template")
        said = [] if system is None else [{"role": "system", "content": system}]
        try:
            return t.apply_chat_template([*said, {"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True)
        except Exception as e:  # the template's own, too
            raise Problem("prompt: chat template: %s" % e) from e

    def ids(self, text):
        """Special tokens are recognised in the text, none is added."""
        ids = self._load()(text, add_special_tokens=False)["input_ids"]
        if not ids:
            raise Problem("text: got no tokens, want at least 1")
        return list(ids)

    def decoded(self, ids, stop):
        """None for a model without a tokenizer."""
        try:
            t = self._load()
        except Problem:
            return None
        return t.decode([i for i in ids if i not in stop], skip_special_tokens=True, clean_up_tokenization_spaces=False)
