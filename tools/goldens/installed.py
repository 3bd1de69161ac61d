"""What is installed: versions, and hashes of the reference's source files. The pure side is pins.py."""

import importlib
import importlib.metadata
import sys
from pathlib import Path

import hashing
from failure import Untrusted

LIBRARY = "transformers"
LIBRARIES = ("numpy", "safetensors", "tokenizers", "torch", "transformers")


def versions():
    out = {"python": ".".join(map(str, sys.version_info[:2]))}
    for name in LIBRARIES:
        try:
            # The module's own statement where it has one: torch's carries the build (+cpu, +cu…), which is arithmetic.
            out[name] = str(getattr(importlib.import_module(name), "__version__", None) or importlib.metadata.version(name))
        except ImportError as err:
            raise Untrusted(f"version of {name}: got nothing, want the pinned one (make goldens installs it)") from err
    return out


def package_root():
    """The folder that holds the package folder `transformers`."""
    return Path(importlib.import_module(LIBRARY).__file__).resolve().parents[1]


def reference(modules):
    """The installed reference in the form of pins.json, for the given module paths."""
    found = versions()  # first: it refuses when something isn't installed at all
    root = package_root()
    present = {m: hashing.sha256(root / m) for m in modules if (root / m).is_file()}
    return {"library": LIBRARY, "versions": found, "modules": present}


def executed(call):
    """Runs call() and returns the paths of the library's source files that it ran through."""
    root = package_root()
    seen = set()

    def profile(frame, event, _):
        if event == "call":
            seen.add(frame.f_code.co_filename)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    out = set()
    for name in seen:
        path = Path(name)
        if path.is_absolute() and path.resolve().is_relative_to(root / LIBRARY):
            out.add(path.resolve().relative_to(root).as_posix())
    return out
