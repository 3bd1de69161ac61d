"""SHA-256 of files and folders, in the form in which the manifest keeps them."""

import hashlib

from failure import Untrusted


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def entry(path):
    """{"bytes": …, "sha256": …} of one file."""
    return {"bytes": path.stat().st_size, "sha256": sha256(path)}


def folder(path, leave_out=()):
    """Name -> entry of every file in a flat folder; a folder or link inside is refused, hidden files are not spared."""
    if not path.is_dir():
        raise Untrusted(f"{path.name}: got no such folder, want one with files")
    out = {}
    for p in sorted(path.iterdir()):
        if p.name in leave_out:
            continue
        if p.is_symlink() or not p.is_file():
            raise Untrusted(f"{path.name}/{p.name}: got a link or folder, want plain files only")
        out[p.name] = entry(p)
    return out
