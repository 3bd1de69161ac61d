"""Modules as torch has them, as far as the adapter looks at them, for tests without torch."""


class Module:
    def __init__(self, **children):
        self.children, self.hooks = children, []

    def named_children(self):
        return list(self.children.items())

    def named_modules(self, path=""):
        yield path, self
        for name, child in self.children.items():
            yield from child.named_modules((path + "." if path else "") + name)

    def _register(self, hook):
        self.hooks.append(hook)

        class Handle:
            remove = staticmethod(lambda: self.hooks.remove(hook))

        return Handle

    def register_forward_hook(self, hook):
        return self._register(("out", hook))

    def register_forward_pre_hook(self, hook, with_kwargs):
        assert with_kwargs
        return self._register(("in", hook))

    def __call__(self, *args, returns=None, **kwargs):
        for side, hook in list(self.hooks):
            if side == "in":
                hook(self, args, kwargs)
        for side, hook in list(self.hooks):
            if side == "out":
                hook(self, args, returns)
        return returns


class ModuleList(Module):
    def __init__(self, modules):
        super().__init__(**{str(i): m for i, m in enumerate(modules)})

    def __len__(self):
        return len(self.children)

    def __iter__(self):
        return iter(self.children.values())


class Config:
    def __init__(self, **keys):
        self.__dict__.update(keys)


def modules(*names):
    return {n: Module() for n in names}


def llama_layer():
    return Module(
        input_layernorm=Module(), self_attn=Module(**modules("q_proj", "k_proj", "v_proj", "o_proj")),
        mlp=Module(**modules("gate_proj", "up_proj", "down_proj")), post_attention_layernorm=Module(),
    )  # fmt: skip


class Model(Module):
    def __init__(self, n, layer, rotary=True, layers="layers", norm="norm"):
        more = {"rotary_emb": Module()} if rotary else {}
        inner = {"embed_tokens": Module(), layers: ModuleList([layer() for _ in range(n)]), norm: Module(), **more}
        super().__init__(model=Module(**inner), lm_head=Module())
        self.config = Config(num_hidden_layers=n)

    def get_decoder(self):
        return self.children["model"]
