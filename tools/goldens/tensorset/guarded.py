"""The exit codes of a pass, which record.py reads."""

import sys

from failure import Failure, Untrusted

UNTRUSTED, REFUSED = 2, 3


def run(call):
    try:
        call()
    except Failure as err:
        print(f"goldens: {err}", file=sys.stderr)
        return UNTRUSTED if isinstance(err, Untrusted) else REFUSED
    return 0
