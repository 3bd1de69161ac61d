import os
import tempfile
import unittest

from plumbline_adapter import prompt_list
from plumbline_adapter.problem import Problem


class Read(unittest.TestCase):
    def read(self, data):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "p.jsonl")
            with open(path, "wb") as f:
                f.write(data if isinstance(data, bytes) else data.encode())
            return prompt_list.read(path)

    def test_lines(self):
        a, b, c = self.read(
            '{"name":"a","prompt":"Hi!"}\n\n  \r\n'
            '{"name":"b","text":"<|im_start|>ü","token_ids":[0,2147483647],"stop":[],"system":null,"why":{"x":1.5}}\r\n'
            '{"name":"c","prompt":"q","system":"s","output_ids":[1],"decoded":"x","stop":null,"max_new":0}'
        )
        self.assertEqual(("a", 1, "Hi!", None, None), (a.name, a.line, a.prompt, a.text, a.token_ids))
        self.assertIs(a.system, prompt_list.ABSENT)
        self.assertEqual(("<|im_start|>ü", [0, 2147483647], [], None), (b.text, b.token_ids, b.stop, b.system))
        self.assertEqual({"why": {"x": 1.5}}, b.extra)
        self.assertEqual((None, 0), (a.max_new, c.max_new))
        self.assertEqual(("s", None, {}), (c.system, c.stop, c.extra))  # another run's output is left out

    def test_refused(self):
        for data, want in (
            ("", "prompts: got none"),
            ('[{"name":"a","prompt":"b"}]', "got a JSON array"),
            ("{", "no JSON"),
            ("1", "want one JSON object"),
            ('{"prompt":"b"}', 'key "name": got nothing'),
            ('{"name":7,"prompt":"b"}', 'key "name": got 7'),
            ('{"name":"","prompt":"b"}', "a base name"),
            ('{"name":"engine","prompt":"b"}', "a base name"),
            ('{"name":".a","prompt":"b"}', "a base name"),
            ('{"name":"a/b","prompt":"b"}', "a base name"),
            ('{"name":"a\\\\b","prompt":"b"}', "a base name"),
            ('{"name":"a\\u0085","prompt":"b"}', "a base name"),
            ('{"name":"%s","prompt":"b"}' % ("ü" * 76), "got 152 bytes, want at most 150"),
            ('{"name":"a"}', 'key "prompt": got nothing'),
            ('{"name":"a","prompt":null}', 'key "prompt": got nothing'),
            ('{"name":"a","prompt":""}', "an empty one"),
            ('{"name":"a","prompt":1}', "prompt: got 1"),
            ('{"name":"a","text":null}', "text: got null"),
            ('{"name":"a","prompt":"b","system":2}', "system: got 2"),
            ('{"name":"a","prompt":"b\\u0000"}', "prompt: got a NUL at character 1"),
            ('{"name":"a","text":"\\ud800"}', "half of a surrogate pair"),
            (b'{"name":"a","text":"\xff"}', "byte 0xFF at 20"),
            ('{"name":"a","text":"b","token_ids":[]}', "token_ids: got none"),
            ('{"name":"a","text":"b","token_ids":[-1]}', "token_ids: got [-1]"),
            ('{"name":"a","text":"b","token_ids":[1.0]}', "token_ids: got [1.0]"),
            ('{"name":"a","text":"b","token_ids":[true]}', "token_ids: got [true]"),
            ('{"name":"a","text":"b","token_ids":[2147483648]}', "token_ids"),
            ('{"name":"a","text":"b","token_ids":null}', "token_ids: got null"),
            ('{"name":"a","text":"b","stop":[-1]}', "stop: got [-1]"),
            ('{"name":"a","text":"b","max_new":-1}', "max_new: got -1"),
            ('{"name":"a","text":"b","max_new":true}', "max_new: got true"),
            ('{"name":"a","text":"b","x":NaN}', "number: got NaN"),
            ('{"name":"a","text":"b","text":"c"}', 'key "text": got it twice'),
            ('{"name":"a","text":"b"}\n{"name":"a","text":"b"}', ':2: name: got "a", the name of line 1'),
        ):
            with self.subTest(data), self.assertRaises(Problem) as caught:
                self.read(data)
            self.assertIn(want, str(caught.exception))

    def test_complete(self):
        rows = self.read(
            '{"name":"a","prompt":"p"}\n{"name":"b","prompt":"p","system":null}\n{"name":"c","prompt":"p","text":"t","token_ids":[9]}'
        )
        prompt_list.complete(rows, "f", lambda system, prompt: "%s/%s" % (system, prompt), lambda text: [len(text)], "S")
        self.assertEqual(["S/p", "None/p", "t"], [r.text for r in rows])
        self.assertEqual([[3], [6], [9]], [r.token_ids for r in rows])
        self.assertEqual(["S", None, prompt_list.ABSENT], [r.system for r in rows])

        def no_template(system, prompt):
            raise Problem("no template")

        with self.assertRaises(Problem) as caught:
            prompt_list.complete(self.read('\n{"name":"a","prompt":"p"}'), "f", no_template, None, "S")
        self.assertEqual("f:2: no template; a line may bring text and token_ids", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
