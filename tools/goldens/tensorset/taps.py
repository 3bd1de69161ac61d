"""Hooks that keep what a model computes at every position, one row each."""

from failure import Failure


class Taps:
    """seen: (layer, part) -> list of rows; layer -1 is what lies outside the layers."""

    def __init__(self):
        self.seen, self._handles, self._undo = {}, [], []

    def keep(self, key, value):
        """value is [1, positions, …]."""
        x = value[0].detach()
        self.seen.setdefault(key, []).extend(x.reshape(x.shape[0], -1).float().clone())

    def output(self, module, key):
        def hook(_module, _args, out):
            self.keep(key, out[0] if isinstance(out, tuple) else out)

        self._handles.append(module.register_forward_hook(hook))

    def input(self, module, key):
        def hook(_module, args):
            self.keep(key, args[0])

        self._handles.append(module.register_forward_pre_hook(hook))

    def before(self, module, call):
        self._handles.append(module.register_forward_pre_hook(lambda _module, _args: call()))

    def function(self, owner, name, see):
        """see(result) is told what each call of owner.name returns."""
        real = getattr(owner, name)

        def call(*args, **kw):
            out = real(*args, **kw)
            see(out)
            return out

        setattr(owner, name, call)
        self._undo.append(lambda: setattr(owner, name, real))

    def close(self):
        for handle in self._handles:
            handle.remove()
        for undo in self._undo:
            undo()

    def at(self, positions, total):
        """Tensor name -> float32 tensor of the rows at positions, out of total."""
        import torch

        out = {}
        for (layer, part), rows in self.seen.items():
            name = part if layer < 0 else f"blocks.{layer}.{part}"
            if len(rows) != total:
                raise Failure(f"{name}: got {len(rows)} positions, want {total}")
            out[name] = torch.stack([rows[i] for i in positions])
        return out
