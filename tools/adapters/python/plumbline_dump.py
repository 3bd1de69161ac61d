"""The dumps that Plumbline compares, written by an inference engine. One file,
Python 3.8 or newer, standard library only.

    rows = [...]  # row 0: the last prompt token's embedding, row i: the residual
                  # stream after layer i-1; lists, or anything with a length
    f32_layers("out/a.layers.bin", prompt, rows)
A dump folder has one engine.json, and per case NAME.json with NAME.layers.bin,
NAME.logits.bin and NAME.probes.safetensors, each optional. Write NAME.json last:
without it the case counts as unfinished.
A file appears whole, under its final name, or not at all (by a hard link); one
that exists is never overwritten (FileExistsError). What Plumbline would refuse is a ValueError.
The prompt is the whole templated one, as the tokeniser gets it."""
import contextlib
import json
import math
import operator
import os
import secrets
import struct

def fingerprint(prompt):
    """FNV-1a 64 of the prompt's UTF-8: what ties a layer dump to it."""
    h = 0xCBF29CE484222325
    for byte in prompt.encode("utf-8"):
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h

def f32_layers(path, prompt, rows):
    """Rows of float32, layers + 1 of the hidden size."""
    _dump(path, "f", rows, prompt)

def int8_layers(path, prompt, scales, codes):
    """Rows of int8 codes; the value of a code of row r is code * m * 2**e with
    (m, e) = scales[r], integers; m > 0, and m * 2**e normal and finite in float64."""
    if len(scales) != len(codes):
        raise ValueError("one scale (m, e) per row")
    _dump(path, "b", codes, prompt, [_scale(m, e) for m, e in scales])

def f32_logits(path, rows):
    """Row i holds the logits that chose output token i; there may be no row."""
    _dump(path, "f", rows)

def i32_logits(path, rows):
    """The same for integer logits."""
    _dump(path, "i", rows)

def probes(path, tensors):
    """tensors: {name: rows}, float32 of shape [positions, width], by the names of
    probes in Plumbline's documentation."""
    header, at = {}, 0
    if not tensors or not all(isinstance(name, str) and name != "__metadata__" for name in tensors):
        raise ValueError("probes: at least one, named by a text that isn't __metadata__")
    for name, rows in tensors.items():
        shape = [len(rows), _width(rows, 1)]
        end = at + 4 * shape[0] * shape[1]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = _json(header, 10**8 - 8)
    text += b" " * (-len(text) % 8)
    with _new_file(path) as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name, rows in tensors.items():
            for row in rows:
                f.write(_packed("f", header[name]["shape"][1], row))

def case(path, prompt, token_ids, /, **more):
    """NAME.json. more: output_ids, decoded, stop, prompt, system, anything of your own."""
    texts = ("" if more.get(key) is None else more[key] for key in ("system", "decoded"))
    if "text" in more or not all(isinstance(t, str) for t in (prompt, *texts)):
        raise ValueError("prompt, which is the case's text, system and decoded are texts")
    ids = {k: _integers(v, 0, 2**31) for k, v in more.items() if k in ("output_ids", "stop") and v is not None}
    token_ids = _integers(token_ids, 0, 2**31)
    if not token_ids:
        raise ValueError("token_ids: got none, want at least one")
    with _new_file(path) as f:
        f.write(_json({"text": prompt, "token_ids": token_ids, **more, **ids}) + b"\n")

def engine(path, name, **more):
    """engine.json. more: layers ("f32" or "int8-scaled"), logits ("f32" or
    "i32"), version, weights, activations, kv_cache, model, dtype, …"""
    if not isinstance(name, str) or not name.strip():
        raise ValueError("name: got %r, want a name" % (name,))
    for key, allowed in (("layers", ("f32", "int8-scaled")), ("logits", ("f32", "i32"))):
        if more.get(key) not in (None, *allowed):
            raise ValueError("%s: got %r, want one of %s" % (key, more[key], allowed))
    with _new_file(path) as f:
        f.write(_json({"name": name, **more}) + b"\n")

def _dump(path, code, rows, *prompt_scales):
    width = _width(rows, 1 if prompt_scales else 0)
    head = struct.pack("<QQ", len(rows), width)
    if prompt_scales:
        head += struct.pack("<QQ", fingerprint(prompt_scales[0]), 1)  # token by token, with a KV cache
    with _new_file(path) as f:
        f.write(head)
        for i, row in enumerate(rows):
            f.write(b"".join(scales[i] for scales in prompt_scales[1:]) + _packed(code, width, row))

def _in_order(values):
    if isinstance(values, (str, bytes, bytearray, set, frozenset, dict)):
        raise ValueError("%s: want a list or an array" % type(values).__name__)
    return values

def _width(rows, least):
    widths = {len(_in_order(row)) for row in _in_order(rows)}
    if len(rows) < least or len(widths) > 1 or 0 in widths:
        raise ValueError("rows of one width, at least %d, none empty" % least)
    return widths.pop() if widths else 0

def _integers(values, least, end):
    try:
        values = [int(operator.index(v)) for v in _in_order(values)]
    except TypeError as e:
        raise ValueError("want integers: %s" % e) from e
    if not all(least <= v < end for v in values):
        raise ValueError("want integers in [%d, %d)" % (least, end))
    return values

def _scale(m, e):
    (m,), (e,) = _integers([m], 1, 2**63), _integers([e], -1100, 1101)
    if not -1022 <= math.frexp(m)[1] - 1 + e <= 1016:
        raise ValueError("scale %d * 2**%d: want a step that float64 holds" % (m, e))
    return struct.pack("<qq", m, e)

def _packed(code, width, row):
    try:
        return struct.pack("<%d%s" % (width, code), *row)
    except (struct.error, OverflowError, TypeError) as e:  # out of range, no number
        raise ValueError("a row of %d values: %s" % (width, e)) from e

def _json(value, most=64 << 20):
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")
    if len(text) >= most:
        raise ValueError("%d bytes of JSON, want less than %d" % (len(text), most))
    return text

@contextlib.contextmanager
def _new_file(path):
    folder, name = os.path.split(os.path.abspath(path))
    temp = os.path.join(folder, ".%s.tmp-%s" % (name[:100], secrets.token_hex(8)))
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(fd, "wb") as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        os.link(temp, path)  # fails on an existing name
    finally:
        os.unlink(temp)
