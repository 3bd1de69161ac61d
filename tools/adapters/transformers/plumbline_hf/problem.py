"""The two ways in which a dump isn't made."""


class Problem(Exception):
    """What was asked for can't be done as it stands: a bad list of prompts, a folder in the way."""


class LayoutError(Exception):
    """The model isn't laid out in a way that this adapter can dump; the text names what was looked for."""
