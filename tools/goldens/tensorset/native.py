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


def describe(dtype):
    """The manifest's `arithmetic`."""
    import torch

    onednn = "on" if torch.backends.mkldnn.enabled else "off"
    return {**arithmetic.describe(), "attention": ATTENTION, "dtype": dtype, "onednn": onednn}


def load(kind, folder, dtype):
    """The checkpoint in a class of transformers; refused where the class doesn't take it as it is."""
    import torch
    from failure import Untrusted

    model, info = kind.from_pretrained(
        folder, local_files_only=True, dtype=getattr(torch, dtype), attn_implementation=ATTENTION, output_loading_info=True
    )
    wrong = {k: v for k, v in info.items() if v}
    if wrong:
        raise Untrusted(f"checkpoint: the model doesn't take it as it is: {wrong}")
    return model.eval()
