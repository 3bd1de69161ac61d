"""Hooks that keep what a model computes at every position, one row each."""

from failure import Failure


class Taps:
    """seen: (layer, part) -> per sequence of the batch a list of rows; layer -1 is what lies outside the layers."""

    def __init__(self):
        self.seen, self._handles, self._undo = {}, [], []

    def keep(self, key, value):
        """value is [batch, positions, …]."""
        x = value.detach().flatten(2).float().clone()
        for rows, more in zip(self.seen.setdefault(key, [[] for _ in x]), x, strict=True):
            rows.extend(more)

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

    def after(self, module, call):
        """call is given what the module returns; what it returns itself, if anything, takes that place."""
        self._handles.append(module.register_forward_hook(lambda _module, _args, out: call(out)))

    def function(self, owner, name, see):
        """see(arguments, result) is told of each call of owner.name."""
        real = getattr(owner, name)

        def call(*args, **kw):
            out = real(*args, **kw)
            see(args, out)
            return out

        setattr(owner, name, call)
        self._undo.append(lambda: setattr(owner, name, real))

    def close(self):
        for handle in self._handles:
            handle.remove()
        for undo in self._undo:
            undo()

    def at(self, positions, total, sequence=0):
        """Tensor name -> float32 tensor of a sequence's rows at positions, out of total."""
        import torch

        out = {}
        for (layer, part), batch in self.seen.items():
            name, rows = part if layer < 0 else f"blocks.{layer}.{part}", batch[sequence]
            if len(rows) != total:
                raise Failure(f"{name}: got {len(rows)} positions, want {total}")
            out[name] = torch.stack([rows[i] for i in positions])
        return out
