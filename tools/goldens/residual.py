"""Layer dumps: the raw residual stream at the prompt's last token, and three checks that the capture is what it claims.

Rows come from forward hooks. The model's own list of hidden states is of no use: its last entry has been through the
final norm. The prompt is fed one token a call, as an engine with a key/value cache computes it; a batched prefill sums
in another order. So the rows that stay are those of the last call.
"""

from failure import Failure


class Tap:
    """Keeps a copy of the last row that the embedding (row 0) and each layer i (row i+1) put out."""

    def __init__(self, decoder):
        self.modules = [decoder.embed_tokens, *decoder.layers]
        self.rows = [None] * len(self.modules)

    def __enter__(self):
        self.handles = [m.register_forward_hook(self._keep(i)) for i, m in enumerate(self.modules)]
        return self

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()

    def _keep(self, i):
        def hook(_module, _args, output):
            out = output[0] if isinstance(output, tuple) else output
            self.rows[i] = out[0, -1].detach().clone()  # a copy: later operations may write into the same memory

        return hook


def each_token(ids):
    import torch

    for position, token in enumerate(ids):
        yield position, torch.tensor([[token]])


def capture(model, ids):
    """The rows, float32 tensors of width hidden size."""
    from transformers import DynamicCache

    cache = DynamicCache()
    with Tap(model.model) as tap:
        for _, token in each_token(ids):
            model(input_ids=token, past_key_values=cache, use_cache=True)
    if cache.get_seq_length() != len(ids):
        raise Failure(f"capture: the cache holds {cache.get_seq_length()} positions, want {len(ids)}")
    return tap.rows


def check_endpoints(model, ids, rows):
    """The last row is the stream before the final norm, the first one the embedding of the last token.

    Compared with what the decoder returns from a run of its own, without hooks. That the row differs from its own norm
    would prove nothing: a normed row differs from its norm as well.
    """
    import torch
    from transformers import DynamicCache

    cache = DynamicCache()
    for _, token in each_token(ids):
        out = model.model(input_ids=token, past_key_values=cache, use_cache=True).last_hidden_state
    normed = out[0, -1]
    if torch.equal(rows[-1], normed):
        raise Failure(f"endpoint check: row {len(rows) - 1} is the stream after the final norm, want it before")
    if not torch.equal(model.model.norm(rows[-1][None, None])[0, 0], normed):
        raise Failure(f"endpoint check: the final norm of row {len(rows) - 1} is not the decoder's own result")
    last = model.get_input_embeddings().weight[ids[-1]]
    if not torch.equal(rows[0], last):
        raise Failure(f"endpoint check: row 0 is not the embedding of the last token, {ids[-1]}")


def check_interior(model, ids, rows):
    """Every row again, from the layers called by hand with their own mask, rotation and cache; equal in bits."""
    import torch
    from transformers import DynamicCache
    from transformers.masking_utils import create_causal_mask

    decoder, cache = model.model, DynamicCache()
    for position, token in each_token(ids):
        x = decoder.embed_tokens(token)
        where = torch.tensor([[position]])
        mask = create_causal_mask(
            config=model.config, inputs_embeds=x, attention_mask=None, past_key_values=cache, position_ids=where
        )
        turn = decoder.rotary_emb(x, where)
        composed = [x]
        for layer in decoder.layers:
            x = layer(
                x, attention_mask=mask, position_embeddings=turn, position_ids=where, past_key_values=cache, use_cache=True
            )
            composed.append(x)
    for i, (hooked, direct) in enumerate(zip(rows, composed, strict=True)):
        if not torch.equal(hooked, direct[0, -1]):
            raise Failure(f"interior check: row {i} from the hooks is not the one from the layers called by hand")
