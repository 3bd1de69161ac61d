"""The two ways in which a dump isn't made."""

from plumbline_adapter.problem import Problem as Problem


class LayoutError(Exception):
    """The model isn't laid out in a way that this adapter can dump; the text names what was looked for."""
