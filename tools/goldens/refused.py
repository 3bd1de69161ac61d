"""What the unit tests share: that a call refuses, in the right way and words."""

from failure import Failure


def refused(test, kind, text, call, *args, **kw):
    """call must raise exactly kind, with text in its message."""
    with test.assertRaises(Failure) as caught:
        call(*args, **kw)
    test.assertIs(type(caught.exception), kind)
    test.assertIn(text, str(caught.exception))
