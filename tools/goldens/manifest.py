"""The manifest: provenance of a golden set, in the schema that README.md states. Plain values only."""

import json

from failure import Untrusted

SCHEMA = "plumbline-golden-manifest-v1"
MEASURE = (
    "relative L2 of each float32 row from the same row of a float64 run of the recorder's own numpy forward "
    "(norm, softmax and rotary tables in float64 too); row 0 of the layers is a copy and has 0"
)
KEYS = {
    "schema", "set", "goldens", "checkpoint", "prompts", "cases", "reference", "arithmetic", "recorder", "passes",
    "max_new", "stop", "precision",
}  # fmt: skip


def encode(m):
    if set(m) != KEYS:
        raise Untrusted(f"manifest: got keys {sorted(m)}, want {sorted(KEYS)}")
    text = json.dumps(m, ensure_ascii=False, indent=1, sort_keys=True, allow_nan=False)
    return (text + "\n").encode("utf-8")


def load(path):
    """The manifest that is there, None when there is none."""
    try:
        m = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as err:
        raise Untrusted(f"{path.name}: {type(err).__name__}: {err}") from err
    if not isinstance(m, dict) or m.get("schema") != SCHEMA or set(m) != KEYS:
        raise Untrusted(f"{path.name}: got another schema, want {SCHEMA}")
    return m


def differences(old, new, where=""):
    """The paths of values that differ, in order: `checkpoint.files.model.safetensors.sha256`."""
    if isinstance(old, dict) and isinstance(new, dict):
        out = []
        for key in sorted(old.keys() | new.keys()):
            at = f"{where}.{key}" if where else key
            if key not in old or key not in new:
                out.append(f"{at}: {'new' if key not in old else 'gone'}")
            else:
                out += differences(old[key], new[key], at)
        return out
    return [] if old == new else [f"{where}: {_short(old)} becomes {_short(new)}"]


def _short(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 72 else text[:69] + "..."
