"""What a model or its options can't do."""

from plumbline_adapter.problem import Problem


class Unsupported(Problem):
    """The case is beyond this model or these options."""
