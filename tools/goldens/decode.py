"""Logit dumps: greedy decoding, one batched prefill and then single steps; each row as it was before the choice."""

from dataclasses import dataclass, field


@dataclass
class Decoded:
    output_ids: list = field(default_factory=list)
    rows: list = field(default_factory=list)  # float32 tensors of vocabulary size
    text: str = ""


def greedy(model, tokenizer, ids, stop, max_new):
    """Stops after max_new tokens or a stop id, which is kept in the ids and left out of the text."""
    import torch

    out = Decoded()
    step = model(input_ids=torch.tensor([ids]), use_cache=True)
    while True:
        row = step.logits[0, -1].detach().float().clone()
        token = int(row.numpy().argmax())  # numpy's argmax is the lowest index on ties, torch's promises nothing
        out.rows.append(row)
        out.output_ids.append(token)
        if token in stop or len(out.output_ids) == max_new:
            break
        step = model(input_ids=torch.tensor([[token]]), past_key_values=step.past_key_values, use_cache=True)
    kept = [i for i in out.output_ids if i not in stop]
    out.text = tokenizer.decode(kept, skip_special_tokens=True)
    return out
