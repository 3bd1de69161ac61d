"""The arithmetic that goldens are recorded in: float32, CPU, one thread, one instruction set.

Matrix products sum in another order on another instruction set, and so the bytes of a golden belong to one. AVX2 is
asked for because every current x86-64 machine has it; the variables must be set before torch is loaded.
"""

import os

from failure import Untrusted

ENVIRONMENT = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "CUDA_VISIBLE_DEVICES": "",
    "MKL_CBWR": "AVX2",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
}
# These change no number: no network, no progress bars, nothing written beside the sources.
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TQDM_DISABLE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}
ATTENTION = "sdpa"


def environment(base):
    """base with the recorder's variables, for a child process."""
    return {**base, **ENVIRONMENT, **QUIET, "PYTHONHASHSEED": "0"}


def settle():
    """Makes this process compute like that; refuses when torch was loaded under other variables."""
    wrong = [k for k, v in ENVIRONMENT.items() if os.environ.get(k) != v]
    if wrong:
        raise Untrusted(f"environment: got other values of {', '.join(wrong)}, want those of arithmetic.py")
    import torch

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def describe():
    """The manifest's `arithmetic`, as this process computes."""
    import torch

    return {
        "attention": ATTENTION,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "device": "cpu",
        "dtype": "float32",
        "environment": ENVIRONMENT,
        "threads": torch.get_num_threads(),
    }


def demand(got, want):
    """Refuses to compare bytes that were computed in another arithmetic than the recorded ones."""
    for key in sorted(got.keys() | want.keys()):
        if got.get(key) != want.get(key):
            raise Untrusted(f"arithmetic: {key}: got {got.get(key)}, want {want.get(key)} as in the manifest")
