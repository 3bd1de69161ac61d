import os
import tempfile
import unittest

from plumbline_adapter.folder import NewFolder
from plumbline_adapter.problem import Problem


class Folder(unittest.TestCase):
    def setUp(self):
        d = tempfile.TemporaryDirectory()
        self.addCleanup(d.cleanup)
        self.above = d.name
        self.path = os.path.join(self.above, "new", "dumps")

    def write(self, *names, overwrite=False):
        with NewFolder(self.path, overwrite) as temp:
            for n in names:
                open(os.path.join(temp, n), "w").close()

    def content(self):
        return sorted(os.listdir(self.path)), os.listdir(os.path.dirname(self.path))

    def test_it_appears_as_a_whole(self):
        self.write("engine.json", "a.json")
        self.assertEqual((["a.json", "engine.json"], ["dumps"]), self.content())

    def test_an_error_leaves_what_was_there(self):
        self.write("engine.json")
        with self.assertRaises(KeyboardInterrupt), NewFolder(self.path, True) as temp:
            open(os.path.join(temp, "b.json"), "w").close()
            raise KeyboardInterrupt
        self.assertEqual((["engine.json"], ["dumps"]), self.content())

    def test_overwrite_replaces_dump_folders_only(self):
        self.write("engine.json", "a.json", "a.layers.bin")
        with self.assertRaisesRegex(Problem, "3 files, want a new or an empty one"):
            self.write("engine.json")
        self.write("engine.json", "b.json", overwrite=True)
        self.assertEqual((["b.json", "engine.json"], ["dumps"]), self.content())
        open(os.path.join(self.path, "thesis.txt"), "w").close()
        with self.assertRaisesRegex(Problem, "got 'thesis.txt' in it"):
            self.write("engine.json", overwrite=True)
        os.unlink(os.path.join(self.path, "thesis.txt"))
        os.unlink(os.path.join(self.path, "engine.json"))
        with self.assertRaisesRegex(Problem, "no engine.json"):
            self.write("engine.json", overwrite=True)
        self.assertEqual((["b.json"], ["dumps"]), self.content())

    def test_a_file_in_the_way(self):
        self.path = os.path.join(self.above, "f")
        open(self.path, "w").close()
        with self.assertRaisesRegex(Problem, "got a file"):
            self.write("engine.json", overwrite=True)


if __name__ == "__main__":
    unittest.main()
