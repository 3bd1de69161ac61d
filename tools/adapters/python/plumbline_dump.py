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
import array
import contextlib
import json
import os
import secrets
import struct
import sys


def fingerprint(prompt):
    """FNV-1a 64 of the prompt's UTF-8: what ties a layer dump to it."""
    h = 0xCBF29CE484222325
    for byte in prompt.encode("utf-8"):
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h


def f32_layers(path, prompt, rows):
    """Rows of float32, layers + 1 of the hidden size."""
    width = _width(rows, 1)
    with _new_file(path) as f:
        f.write(_layer_head(prompt, len(rows), width))
        for row in rows:
            f.write(_packed("f", row))


def int8_layers(path, prompt, scales, codes):
    """Rows of int8 codes; the value of a code of row r is code * m * 2**e with
    (m, e) = scales[r] and m > 0."""
    width = _width(codes, 1)
    if len(scales) != len(codes) or any(m <= 0 for m, _ in scales):
        raise ValueError("one scale (m, e) per row, with m > 0")
    with _new_file(path) as f:
        f.write(_layer_head(prompt, len(codes), width))
        for (m, e), row in zip(scales, codes):
            f.write(struct.pack("<qq", m, e) + _packed("b", row))


def f32_logits(path, rows):
    """Row i holds the logits that chose output token i; there may be no row."""
    _logits(path, rows, "f")


def i32_logits(path, rows):
    """The same for integer logits."""
    _logits(path, rows, "i")


def probes(path, tensors):
    """tensors: {name: rows}, float32 of shape [positions, width], by the names of
    probes in Plumbline's documentation."""
    header, at = {}, 0
    for name, rows in tensors.items():
        shape = [len(rows), _width(rows, 1)]
        end = at + 4 * shape[0] * shape[1]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = _json(header)
    text += b" " * (-len(text) % 8)
    with _new_file(path) as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for rows in tensors.values():
            for row in rows:
                f.write(_packed("f", row))


def case(path, prompt, token_ids, **more):
    """NAME.json. more: output_ids, decoded, stop, system, anything of your own."""
    if not len(token_ids):
        raise ValueError("token_ids: got none, want at least one")
    ids = {k: list(map(int, v)) for k, v in more.items() if k in ("output_ids", "stop")}
    with _new_file(path) as f:
        f.write(_json({"text": prompt, "token_ids": list(map(int, token_ids)), **more, **ids}) + b"\n")


def engine(path, name, **more):
    """engine.json. more: layers ("f32" or "int8-scaled"), logits ("f32" or
    "i32"), version, weights, activations, kv_cache, model, dtype, …"""
    with _new_file(path) as f:
        f.write(_json({"name": name, **more}) + b"\n")


def _layer_head(prompt, rows, width):
    return struct.pack("<QQQQ", rows, width, fingerprint(prompt), 1)  # token by token, with a KV cache


def _logits(path, rows, code):
    width = _width(rows, 0)
    with _new_file(path) as f:
        f.write(struct.pack("<QQ", len(rows), width))
        for row in rows:
            f.write(_packed(code, row))


def _width(rows, least):
    widths = {len(row) for row in rows}
    if len(rows) < least or len(widths) > 1 or 0 in widths:
        raise ValueError("rows of one width, at least %d, none empty" % least)
    return widths.pop() if widths else 0


def _packed(code, row):
    """The values, little-endian; an integer out of range is an OverflowError."""
    values = array.array(code, row)
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def _json(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")


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
