"""Keeps what goes into modules and comes out of them, one row a place and a forward pass of one token."""

from .problem import LayoutError


class Tap:
    """places: {key: (module, "in" or "out", the module's name)}; take makes a row of what a module gets or returns.

    with Tap(...) as tap: tap.begin(); model(one token); rows = tap.end(), {key: row}. A place that the pass doesn't reach,
    or reaches twice, is a LayoutError: a row must not be another pass's, or another use's of the same module.
    """

    def __init__(self, places, take):
        self.places, self.take = places, take
        self.rows, self.handles, self.open = {}, [], False

    def __enter__(self):
        try:
            for key, (module, side, _) in self.places.items():
                if side == "in":
                    self.handles.append(module.register_forward_pre_hook(self._into(key), with_kwargs=True))
                else:
                    self.handles.append(module.register_forward_hook(self._out_of(key)))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        while self.handles:
            self.handles.pop().remove()

    def begin(self):
        self.rows, self.open = {}, True

    def end(self):
        self.open = False
        for key, (_, _, name) in self.places.items():
            if key not in self.rows:
                raise LayoutError("%s: got no call of %s in a forward pass, want one" % (key, name))
        rows, self.rows = self.rows, {}
        return rows

    def keep(self, key, value):
        if not self.open:
            return
        if key in self.rows:
            raise LayoutError("%s: got a second call in one forward pass, want one" % key)
        self.rows[key] = self.take(key, value)

    def _into(self, key):
        def hook(_module, args, kwargs):
            if args:
                self.keep(key, args[0])
            elif "hidden_states" in kwargs:
                self.keep(key, kwargs["hidden_states"])
            else:
                raise LayoutError("%s: got a call with %s, want hidden_states" % (key, ", ".join(kwargs) or "nothing"))

        return hook

    def _out_of(self, key):
        def hook(_module, _args, output):
            self.keep(key, output[0] if isinstance(output, (tuple, list)) else output)

        return hook
