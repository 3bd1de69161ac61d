"""The fixture's shape and its starting weights.

The start is chosen for the suite's power, not for the lowest loss: a fault can only show where the thing it breaks
matters. So norm gains are spread instead of ones, q/k/v carry biases, every layer's update is a visible share of the
residual stream, and the q and k biases of a head make one another peak at a small distance (under RoPE the product of
two constant vectors depends on the distance alone), so that each layer looks at its newest cache rows.
"""

import math

SHAPE = dict(
    vocab_size=2048,
    hidden_size=64,
    intermediate_size=176,
    num_hidden_layers=28,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=32768,
    rms_norm_eps=1e-6,
    tie_word_embeddings=True,
    attention_dropout=0.0,
    use_sliding_window=False,
)
ROPE_THETA = 1e6

GAIN = (0.5, 1.5)  # uniform, per channel
BIAS_NOISE = 0.4  # standard deviation of the q, k and v biases
PEAK = 1.8  # length of the biases' fast rotary pairs: a score of 3*PEAK^2/4 at the favoured distance
FAST_PAIRS = 3  # rotary pairs that turn visibly over a few positions
ATTENTION_OUT = 0.9  # scale of o_proj against 1/sqrt(fan in)
MLP_OUT = 0.6  # scale of down_proj against 1/sqrt(fan in)
EMBED = 0.06
OWN_POSITION = 8.0  # q bias times k bias per fast pair in the second stage: a score of 2*8/4 at distance 0
ATTENTION_OWED = (0.45, 0.25)  # mean weights on the own and the previous position that the second stage asks for


def config(specials_from, eos):
    """The Qwen2Config; special ids follow the learned vocabulary."""
    from transformers import Qwen2Config

    return Qwen2Config(
        **SHAPE,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_THETA},
        bos_token_id=specials_from,
        eos_token_id=eos,
        pad_token_id=specials_from,
    )


def start(model, seed):
    """Fills every parameter of a Qwen2ForCausalLM from one generator, in name order."""
    import torch

    gen = torch.Generator().manual_seed(seed)
    cfg = model.config
    head = cfg.hidden_size // cfg.num_attention_heads
    half = head // 2
    group = cfg.num_attention_heads // cfg.num_key_value_heads
    angle = ROPE_THETA ** (-torch.arange(FAST_PAIRS) * 2.0 / head)

    def normal(p, std):
        p.copy_(torch.randn(p.shape, generator=gen) * std)

    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            if name.endswith("norm.weight"):
                low, high = GAIN
                p.copy_(low + (high - low) * torch.rand(p.shape, generator=gen))
            elif name.endswith("bias"):
                normal(p, BIAS_NOISE)
            elif name.endswith("embed_tokens.weight"):
                normal(p, EMBED)
            else:
                scale = ATTENTION_OUT if "o_proj" in name else MLP_OUT if "down_proj" in name else 1.0
                normal(p, scale / math.sqrt(p.shape[1]))
        for layer in model.model.layers:
            qb = layer.self_attn.q_proj.bias.view(-1, head)
            kb = layer.self_attn.k_proj.bias.view(-1, head)
            for kv in range(kb.shape[0]):
                phase = torch.rand(FAST_PAIRS, generator=gen) * 2 * math.pi
                kb[kv, :FAST_PAIRS] = PEAK * torch.cos(phase)
                kb[kv, half : half + FAST_PAIRS] = PEAK * torch.sin(phase)
                for g in range(group):
                    # One head of a group favours its own position, the next one its neighbour, and so on. The
                    # score of distance d is cos(angle*d + q phase - k phase): the q phase trails by angle*distance.
                    back = g
                    q = phase - angle * back
                    qb[kv * group + g, :FAST_PAIRS] = PEAK * torch.cos(q)
                    qb[kv * group + g, half : half + FAST_PAIRS] = PEAK * torch.sin(q)


def look_at_yourself(model):
    """Makes the first head of each group favour its own position again, which training may have unlearned.

    Turns the two fastest rotary pairs of its q bias to the learned k bias, with a product of OWN_POSITION per pair. A
    cache whose newest row is stale then shows in every layer.
    """
    import torch

    cfg = model.config
    head = cfg.hidden_size // cfg.num_attention_heads
    half, group = head // 2, cfg.num_attention_heads // cfg.num_key_value_heads
    with torch.no_grad():
        for layer in model.model.layers:
            qb = layer.self_attn.q_proj.bias.view(-1, head)
            kb = layer.self_attn.k_proj.bias.view(-1, head)
            for kv in range(kb.shape[0]):
                for pair in (0, 1):
                    at = [pair, half + pair]
                    qb[kv * group, at] = kb[kv, at] * (OWN_POSITION / kb[kv, at].square().sum())



def inattention(attentions, group):
    """How far the layers are from looking at their newest cache rows: 0 when all do enough, a penalty in training.

    attentions are the layers' weights [batch, heads, query, key]. In each group the first head owes its own position
    ATTENTION_OWED[0], the second one the position before ATTENTION_OWED[1]. Not more: a layer that looks at its newest
    rows alone can't show a wrong rotary base.
    """
    import torch

    lack = []
    for weight in attentions:
        for head in range(weight.shape[1]):
            back = head % group
            owed = weight[:, head].diagonal(-back, 1, 2)[:, 8:]
            lack.append(torch.relu(ATTENTION_OWED[back] - owed.mean(1)).mean())
    return torch.stack(lack).mean()
