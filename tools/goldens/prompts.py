"""The hand-written prompts: reading them, and holding each to what its `why` claims.

An entry is `name`, `why`, either `raw` (the whole text) or `prompt` with an optional `system` (null or absent: the
template's own), and optional `claims`. A claim is something that the tokenizer or the checkpoint could make untrue, so it is checked on
the ids at every recording: a prompt that lost its power fails instead of passing quietly.
"""

import json
import re

from failure import Failure, Untrusted

KEYS = {"name", "why", "raw", "prompt", "system", "claims"}
NAME = re.compile(r"[a-z][a-z0-9_]*")
RESERVED = {"engine", "manifest"}


def load(path):
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as err:
        raise Untrusted(f"prompts.json: {type(err).__name__}: want a list of prompts") from err
    if not isinstance(entries, list) or not entries:
        raise Untrusted("prompts.json: got no list of prompts, want at least one")
    names = set()
    for i, e in enumerate(entries):
        _entry(i, e, names)
        names.add(e["name"])
    return entries


def _entry(i, e, names):
    if not isinstance(e, dict):
        raise Untrusted(f"prompts.json: entry {i}: got {type(e).__name__}, want an object")
    name = e.get("name")
    where = f"prompts.json: entry {i} ({name})"
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in RESERVED or name in names:
        raise Untrusted(f"{where}: name: got {name!r}, want a new one of lower-case letters, digits and _")
    if set(e) - KEYS:
        raise Untrusted(f"{where}: got unknown keys {sorted(set(e) - KEYS)}")
    if not isinstance(e.get("why"), str) or not e["why"]:
        raise Untrusted(f"{where}: why: got nothing, want what the prompt has power to show")
    if ("raw" in e) == ("prompt" in e):
        raise Untrusted(f"{where}: got both or neither of raw and prompt, want one")
    if "raw" in e and ("system" in e or not e["raw"]):
        raise Untrusted(f"{where}: got a raw text that is empty or has a system prompt")
    for claim in e.get("claims", []):
        if claim.split(":")[0] not in CLAIMS:
            raise Untrusted(f"{where}: claim: got {claim!r}, want one of {sorted(CLAIMS)}")


def text(entry, tokenizer):
    """The whole text that is tokenised."""
    if "raw" in entry:
        return entry["raw"]
    messages = [{"role": "user", "content": entry["prompt"]}]
    if entry.get("system") is not None:
        messages.insert(0, {"role": "system", "content": entry["system"]})
    return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)


def ids(entry, tokenizer):
    """The text's ids; a templated prompt must give the same when the template tokenises it."""
    whole = text(entry, tokenizer)
    out = tokenizer(whole, add_special_tokens=False)["input_ids"]
    if not out:
        raise Failure(f"{entry['name']}: got no token, want at least one")
    if tokenizer.decode(out, skip_special_tokens=False, clean_up_tokenization_spaces=False) != whole:
        raise Failure(f"{entry['name']}: the ids decode to another text than the prompt's")
    return out


class Facts:
    """What claims are checked against: ids of every prompt, special ids, the norm rank (0 smallest) of each token."""

    def __init__(self, ids_by_name, special, norm_rank):
        self.ids, self.special, self.norm_rank = ids_by_name, set(special), norm_rank


def _tokens(n):
    return lambda f, ids, arg: len(ids) == n


def _between(f, ids, arg):
    low, high = map(int, arg.split("-"))
    return low <= len(ids) <= high


def _special_then_text(f, ids, arg):
    return any(a in f.special and b not in f.special for a, b in zip(ids, ids[1:]))


def _shared(f, ids, arg):
    other, n = arg.rsplit("/", 1)
    n = int(n)
    return other in f.ids and ids[:n] == f.ids[other][:n] and len(ids) > n and ids != f.ids[other]


def _small_norm(f, ids, arg):
    return all(f.norm_rank[i] < int(arg) for i in ids)


CLAIMS = {
    "one_token": _tokens(1),
    "first_is_last": lambda f, ids, arg: len(ids) > 2 and ids[0] == ids[-1],
    "tokens": _between,
    "special_then_text": _special_then_text,
    "ends_special": lambda f, ids, arg: ids[-1] in f.special,
    "shares": _shared,
    "norm_ranks_below": _small_norm,
    "repeats_one_token": lambda f, ids, arg: len(ids) >= 8 and len(set(ids[-8:])) == 1,
}


def hold(entries, facts):
    """Refuses with every claim that isn't true."""
    broken = []
    for e in entries:
        for claim in e.get("claims", []):
            kind, _, arg = claim.partition(":")
            if not CLAIMS[kind](facts, facts.ids[e["name"]], arg):
                broken.append(f"{e['name']}: {claim!r} isn't true of its {len(facts.ids[e['name']])} tokens")
    if broken:
        raise Failure("prompts lost their power:\n  " + "\n  ".join(broken))


def written(entries, texts, ids_by_name):
    """fixtures/…/prompts.json: one prompt a block, ids on one line."""
    blocks = []
    for e in entries:
        record = {"name": e["name"], "text": texts[e["name"]], "token_ids": ids_by_name[e["name"]], "why": e["why"]}
        lines = [f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in record.items()]
        blocks.append(" {\n" + ",\n".join(lines) + "\n }")
    return ("[\n" + ",\n".join(blocks) + "\n]\n").encode("utf-8")
