"""Puts recorded files in place: all of them, or on any error none.

Everything is first written and synced below golden/.recording, whose creation is also the lock against a second
recorder; then each file is renamed over its final name, with a hard link kept to what it replaces, and put back from
there when a later rename fails. Only a kill between two renames leaves a mixture, and the manifest, renamed last, then
says which files are wrong.
"""

import os
import shutil

from failure import Untrusted

STAGE = "golden/.recording"


def files(root, contents):
    """contents maps paths relative to root to bytes, in the order of renaming. Files that are the same are left alone."""
    stage = root / STAGE
    try:
        stage.parent.mkdir(parents=True, exist_ok=True)
        stage.mkdir()
    except FileExistsError:
        raise Untrusted(f"{STAGE} exists: another recorder runs, or one was killed; remove it then") from None
    except OSError as err:
        raise Untrusted(f"{STAGE}: {err.strerror}; nothing was written") from err
    try:
        changed = [(rel, data) for rel, data in contents.items() if not _same(root / rel, data)]
        for i, (_, data) in enumerate(changed):
            _write(stage / f"new{i}", data)
        _rename(root, stage, [rel for rel, _ in changed])
        return [rel for rel, _ in changed]
    except OSError as err:
        raise Untrusted(f"writing the goldens: {err.strerror}; what was there is unchanged") from err
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _same(path, data):
    try:
        return path.read_bytes() == data
    except FileNotFoundError:
        return False


def _write(path, data):
    with open(path, "xb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())


def _rename(root, stage, rels):
    done = []
    try:
        for i, rel in enumerate(rels):
            final = root / rel
            final.parent.mkdir(parents=True, exist_ok=True)
            kept = stage / f"old{i}"
            if final.exists():
                os.link(final, kept)
            done.append((final, kept))
            os.replace(stage / f"new{i}", final)
        for folder in {(root / rel).parent for rel in rels}:
            _sync(folder)
    except BaseException:
        for final, kept in reversed(done):
            if kept.exists():
                os.replace(kept, final)
            else:
                final.unlink(missing_ok=True)
        raise


def _sync(folder):
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
