"""A dump folder that appears as a whole: built under a temporary name beside its final one, and renamed."""

import os
import secrets
import shutil

from .problem import Problem

SUFFIXES = (".json", ".layers.bin", ".logits.bin", ".probes.safetensors")


def replaceable(path, overwrite):
    """Raises where the folder may not be written. Only a dump folder is ever replaced."""
    if not os.path.lexists(path):
        return
    if not os.path.isdir(path):
        raise Problem("%s: got a file, want a folder to make" % path)
    entries = sorted(os.listdir(path))
    if not entries:
        return
    if not overwrite:
        raise Problem("%s: got a folder with %d files, want a new or an empty one; --overwrite replaces it" % (path, len(entries)))
    for name in entries:
        if not name.endswith(SUFFIXES) or not os.path.isfile(os.path.join(path, name)):
            raise Problem("%s: --overwrite replaces a dump folder only: got %r in it" % (path, name))
    if "engine.json" not in entries:
        raise Problem("%s: --overwrite replaces a dump folder only: got no engine.json in it" % path)


class NewFolder:
    """with NewFolder(path, overwrite) as temp: write into temp. An exception leaves what was there before."""

    def __init__(self, path, overwrite=False):
        self.final, self.overwrite = os.path.realpath(path), overwrite
        replaceable(self.final, overwrite)
        above, base = os.path.split(self.final)
        tag = secrets.token_hex(6)
        self.temp = os.path.join(above, ".%s.new-%s" % (base, tag))
        self.old = os.path.join(above, ".%s.old-%s" % (base, tag))

    def __enter__(self):
        os.makedirs(os.path.dirname(self.final), exist_ok=True)
        os.mkdir(self.temp)
        return self.temp

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self._publish()
        finally:
            shutil.rmtree(self.temp, ignore_errors=True)

    def _publish(self):
        replaceable(self.final, self.overwrite)  # it may have changed meanwhile
        replaces = os.path.isdir(self.final)
        if replaces:
            os.rename(self.final, self.old)
        try:
            os.rename(self.temp, self.final)
        except OSError:
            if replaces:
                os.rename(self.old, self.final)
            raise
        if replaces:
            shutil.rmtree(self.old)
