"""Why a dump isn't made, in the caller's words."""


class Problem(Exception):
    """What was asked for can't be done as it stands: a bad list of prompts, a folder in the way."""
