import unittest

from fakes import Module
from plumbline_hf.problem import LayoutError
from plumbline_hf.tap import Tap


class Bookkeeping(unittest.TestCase):
    def setUp(self):
        self.a, self.b = Module(), Module()
        self.places = {"embed": (self.a, "in", "a"), "blocks.0.resid_post": (self.a, "out", "a"), "final_norm": (self.b, "out", "b")}
        self.tap = Tap(self.places, lambda key, value: (key, value))

    def refused(self, text, call):
        with self.assertRaises(LayoutError) as caught:
            call()
        self.assertIn(text, str(caught.exception))

    def test_each_place_once_a_pass(self):
        with self.tap:
            for n in range(2):
                self.tap.begin()
                self.a(10 + n, returns=(20 + n, "weights"))
                self.b(hidden_states=0, returns=30 + n)
                want = {"embed": 10 + n, "blocks.0.resid_post": 20 + n, "final_norm": 30 + n}
                self.assertEqual({k: (k, v) for k, v in want.items()}, self.tap.end())

    def test_an_input_by_keyword(self):
        with self.tap:
            self.tap.begin()
            self.a(attention_mask=1, hidden_states=7, returns=8)
            self.b(returns=9)
            self.assertEqual(("embed", 7), self.tap.end()["embed"])
            self.tap.begin()
            self.refused("embed: got a call with x, want hidden_states", lambda: self.a(x=1))

    def test_a_place_that_is_not_reached(self):
        with self.tap:
            self.tap.begin()
            self.a(1, returns=2)
            self.refused("final_norm: got no call of b", self.tap.end)
            self.tap.begin()  # an earlier pass's row must not stand in
            self.b(1, returns=2)
            self.refused("embed: got no call of a", self.tap.end)

    def test_a_place_that_is_reached_twice(self):
        with self.tap:
            self.tap.begin()
            self.b(1, returns=2)
            self.refused("final_norm: got a second call", lambda: self.b(1, returns=2))

    def test_nothing_is_kept_outside_of_a_pass_and_no_hook_stays(self):
        with self.tap:
            self.a(1, returns=2)
            self.assertEqual({}, self.tap.rows)
            self.assertEqual(2, len(self.a.hooks))
        self.assertEqual([], self.a.hooks + self.b.hooks)

    def test_no_hook_stays_where_one_can_not_be_set(self):
        self.places["q"] = (object(), "out", "no module")
        with self.assertRaises(AttributeError), self.tap:
            pass
        self.assertEqual([], self.a.hooks + self.b.hooks)


if __name__ == "__main__":
    unittest.main()
