"""The recorder's own modules, hashed into the manifest. Training and tests are left out: they make no golden."""

import hashing
from layout import TOOL

OTHERS = {"train.py", "corpus.py", "tokenizer_build.py", "model_init.py", "pin.py", "selfchecks_need_torch.py", "refused.py"}


def digests(layout):
    folder = layout.at(TOOL)
    names = sorted(p.name for p in folder.glob("*.py") if p.name not in OTHERS and not p.name.startswith("test_"))
    return {f"{TOOL}/{n}": hashing.sha256(folder / n) for n in names}
