"""A list of prompts, as `plumbline capture --prompts` reads it: one JSON object a line.

{"name": …, "prompt": …}, or the templated "text" itself; "token_ids" count where a line has them. "system" may be null,
"stop" is the line's own list of ids that end the decode and "max_new" its own most tokens to decode, other keys are kept.
"""

import json
import unicodedata
from dataclasses import dataclass, field
from typing import List, Optional

from .problem import Problem

MAX_NAME = 150  # NAME.probes.safetensors, and its temporary name, within 255 bytes
ABSENT = object()
WANT_NAME = 'a base name for files: no separators, no control characters, no leading dot, not "engine"'


@dataclass
class Prompt:
    name: str
    line: int
    text: Optional[str] = None
    token_ids: Optional[List[int]] = None
    prompt: Optional[str] = None
    system: object = ABSENT  # None is a line that wants no system prompt
    stop: Optional[List[int]] = None
    max_new: Optional[int] = None
    extra: dict = field(default_factory=dict)


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    if data.lstrip().startswith(b"["):
        raise Problem("%s:1: prompts: got a JSON array, want one JSON object a line" % path)
    out, seen = [], {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        p = _parse("%s:%d" % (path, number), number, line)
        if p.name in seen:
            raise Problem(
                "%s:%d: name: got %s, the name of line %d, want each name once"
                % (path, number, json.dumps(p.name), seen[p.name])
            )
        seen[p.name] = number
        out.append(p)
    if not out:
        raise Problem('%s: prompts: got none, want at least one line, e.g. {"name": "hi", "prompt": "Hello!"}' % path)
    return out


def _parse(at, number, line):
    def bad(what, got, want):
        return Problem("%s: %s: got %s, want %s" % (at, what, got, want))

    def once(pairs):
        for i, (key, _) in enumerate(pairs):
            if any(key == other for other, _ in pairs[:i]):
                raise bad("key %s" % json.dumps(key), "it twice", "each key once")
        return dict(pairs)

    def constant(name):
        raise bad("number", name, "one that JSON has")

    try:
        keys = json.loads(line.decode("utf-8"), object_pairs_hook=once, parse_constant=constant)
    except UnicodeDecodeError as e:
        raise bad("line", "byte 0x%02X at %d" % (line[e.start], e.start), "UTF-8") from e
    except ValueError as e:
        raise bad("line", "no JSON (%s)" % e, "one JSON object") from e
    if not isinstance(keys, dict):
        raise bad("line", type(keys).__name__, "one JSON object")
    name = keys.pop("name", None)
    if not isinstance(name, str):
        raise bad('key "name"', "nothing" if name is None else json.dumps(name), WANT_NAME)
    if name in ("", "engine") or name[0] == "." or any(c in "/\\" or unicodedata.category(c) == "Cc" for c in name):
        raise bad("name", json.dumps(name), WANT_NAME)
    if len(name.encode("utf-8", "surrogatepass")) > MAX_NAME:
        raise bad("name", "%d bytes" % len(name.encode("utf-8", "surrogatepass")), "at most %d" % MAX_NAME)
    p = Prompt(name, number, system=keys.pop("system", ABSENT))
    for key in ("text", "prompt"):
        value = keys.pop(key, ABSENT)
        if value is not ABSENT and not (isinstance(value, str) or value is None and key == "prompt"):
            raise bad(key, json.dumps(value), "a text")
        setattr(p, key, None if value is ABSENT else value)
    if p.system not in (ABSENT, None) and not isinstance(p.system, str):
        raise bad("system", json.dumps(p.system), "a text or null")
    if p.text is None and p.prompt is None:
        raise bad('key "prompt"', "nothing", 'a "prompt", or the templated "text"')
    if p.text is None and p.prompt == "":
        raise bad('key "prompt"', "an empty one", "what a user says")
    for what, text in (("name", name), ("prompt", p.prompt), ("system", p.system), ("text", p.text)):
        if isinstance(text, str):
            if "\0" in text:
                raise bad(what, "a NUL at character %d" % text.index("\0"), "text without it")
            if any("\ud800" <= c <= "\udfff" for c in text):
                raise bad(what, "half of a surrogate pair", "whole characters")
    for key, least in (("token_ids", 1), ("stop", 0)):
        ids = keys.pop(key, ABSENT)
        if ids is ABSENT or ids is None and key == "stop":
            continue
        if not isinstance(ids, list) or any(type(i) is not int or not 0 <= i < 2**31 for i in ids):
            raise bad(key, json.dumps(ids), "a list of integers from 0 to 2^31-1")
        if len(ids) < least:
            raise bad(key, "none", "at least 1")
        setattr(p, key, ids)
    p.max_new = keys.pop("max_new", None)
    if p.max_new is not None and (type(p.max_new) is not int or p.max_new < 0):
        raise bad("max_new", json.dumps(p.max_new), "0 or more tokens")
    for key in ("output_ids", "decoded"):  # another run's
        keys.pop(key, None)
    p.extra = keys
    return p


def complete(prompts, path, text_of, ids_of, system):
    """Makes texts and ids as far as the lines have none. text_of and ids_of raise a Problem."""
    for p in prompts:
        try:
            if p.text is None:
                p.system = system if p.system is ABSENT else p.system
                p.text = text_of(p.system, p.prompt)
            if p.token_ids is None:
                p.token_ids = ids_of(p.text)
        except Problem as e:
            raise Problem("%s:%d: %s; a line may bring text and token_ids" % (path, p.line, e)) from e
