import unittest

from plumbline_adapter import packages
from plumbline_adapter.problem import Problem


class Need(unittest.TestCase):
    def test_what_is_there(self):
        packages.need(["json", "os"], "r.txt")

    def test_what_is_not(self):
        with self.assertRaises(Problem) as caught:
            packages.need(["json", "no_such_a", "no_such_b"], "/x y/r.txt", "--no-deps", "do without")
        want = "got no package no_such_a, no_such_b, want it installed: python -m pip install --no-deps --require-hashes -r '/x y/r.txt'; or do without"
        self.assertEqual(want, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
