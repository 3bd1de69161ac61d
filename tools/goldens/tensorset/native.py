"""The arithmetic of a set of tensors: arithmetic.py's, in float32 or bfloat16, and without oneDNN.

oneDNN multiplies bfloat16 with whatever the CPU has for it (AVX512_BF16, AMX) and, where it has nothing, not at all.
Without it torch's own kernels run, which ATEN_CPU_CAPABILITY holds to AVX2 on every CPU. In bfloat16 a sum in another
order moves what is rounded, and a model of layers makes more of it: kernels of another instruction set are as far from
these as both are from float64.
"""

import arithmetic

ATTENTION = "eager"


def settle():
    import torch

    arithmetic.settle()
    torch.backends.mkldnn.set_flags(False)


def describe(dtype, **more):
    """The manifest's `arithmetic`."""
    import torch

    onednn = "on" if torch.backends.mkldnn.enabled else "off"
    return {**arithmetic.describe(), "attention": ATTENTION, "dtype": dtype, "onednn": onednn, **more}


def load(kind, folder, dtype, **more):
    """The checkpoint in a class of transformers; refused where the class doesn't take it as it is."""
    import torch
    from failure import Untrusted

    options = {"attn_implementation": ATTENTION, "dtype": getattr(torch, dtype), "local_files_only": True, **more}
    model, info = kind.from_pretrained(folder, output_loading_info=True, **options)
    wrong = {k: v for k, v in info.items() if v}
    if wrong:
        raise Untrusted(f"checkpoint: the model doesn't take it as it is: {wrong}")
    return model.eval()
