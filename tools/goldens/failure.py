"""The two ways in which the recorder gives up, each with its exit code."""


class Failure(Exception):
    """The goldens are not what they should be: exit code 1."""

    code = 1


class Untrusted(Failure):
    """The run itself can't be trusted, so nothing can be said about the goldens: exit code 2."""

    code = 2
