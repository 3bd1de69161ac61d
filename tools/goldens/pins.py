"""The reference that goldens may be recorded from: pins.json against what is installed.

Pinned are the versions of the libraries and the SHA-256 of every transformers source file that a forward, cache and
decode step run through. The comparison is in plain values, so that it can be tested without torch.
"""

import json

from failure import Untrusted

KEYS = {"library", "versions", "modules"}


def load(path):
    try:
        pins = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as err:
        raise Untrusted(f"pins.json: {type(err).__name__}: want the pinned reference") from err
    if not isinstance(pins, dict) or set(pins) != KEYS:
        raise Untrusted(f"pins.json: got keys {sorted(pins)}, want {sorted(KEYS)}")
    if not pins["versions"] or not pins["modules"]:
        raise Untrusted("pins.json: got no versions or no modules, want both")
    return pins


def differences(got, want):
    """One line `what: got X, want Y` per value that differs, `nothing` where a side has none; sorted."""
    lines = []
    if got["library"] != want["library"]:
        lines.append(f"library: got {got['library']}, want {want['library']}")
    for part, noun in (("versions", "version of "), ("modules", "SHA-256 of ")):
        for key in sorted(got[part].keys() | want[part].keys()):
            g, w = got[part].get(key, "nothing"), want[part].get(key, "nothing")
            if g != w:
                lines.append(f"{noun}{key}: got {g}, want {w}")
    return lines


def demand(got, want):
    """Refuses, with every difference, unless the installed reference is the pinned one."""
    lines = differences(got, want)
    if lines:
        raise Untrusted("the installed reference is not the pinned one:\n  " + "\n  ".join(lines))


def unpinned(executed, want):
    """Refuses when the forward ran through source files that the pins don't know."""
    extra = sorted(set(executed) - set(want["modules"]))
    if extra:
        raise Untrusted("the forward ran through modules that are not pinned: " + ", ".join(extra))
