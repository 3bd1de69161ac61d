"""A list of prompts: one JSON object a line, as plumbline capture --prompts reads it."""

import json

_UNSET = object()


class Prompt:
    """One line. text and token_ids are None where the model makes them."""

    def __init__(self, row, system):
        self.name = _kind(row, "name", str)
        bad = not self.name or self.name == "engine" or self.name[0] == "." or len(self.name.encode()) > 150
        if bad or any(c in "/\\" or ord(c) < 32 or ord(c) == 127 for c in self.name):
            raise ValueError('name: got %r, want a base name for files, not "engine"' % self.name)
        self.prompt = _kind(row, "prompt", str, None)
        self.text = _kind(row, "text", str, None)
        if self.text is None and not self.prompt:
            raise ValueError('got neither a "prompt" nor the templated "text"')
        self.system = _kind(row, "system", str, None) if "system" in row else system
        self.token_ids = _ids(row, "token_ids")
        if self.token_ids == []:
            raise ValueError("token_ids: got none, want at least one")
        self.stop = _ids(row, "stop")
        self.max_new = _kind(row, "max_new", int, None)


def read(path, system):
    """The prompts of a file; system is that of lines without one."""
    out, seen = [], {}
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError("got no JSON object")
                prompt = Prompt(row, system)
                if prompt.name in seen:
                    raise ValueError("name: got %r, the name of line %d" % (prompt.name, seen[prompt.name]))
            except ValueError as e:
                raise ValueError("%s:%d: %s" % (path, number, e)) from e
            seen[prompt.name] = number
            out.append(prompt)
    if not out:
        raise ValueError("%s: got no prompts" % path)
    return out


def _kind(row, key, kind, default=_UNSET):
    value = row.get(key)
    if value is None and default is not _UNSET:
        return default
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError("%s: got %s, want %s" % (key, json.dumps(value)[:60], "a text" if kind is str else "a number"))
    return value


def _ids(row, key):
    ids = row.get(key)
    if ids is None:
        return None
    if not isinstance(ids, list) or not all(type(i) is int and 0 <= i < 2**31 for i in ids):
        raise ValueError("%s: want a list of token ids" % key)
    return ids
