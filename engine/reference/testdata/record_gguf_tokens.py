"""Writes gguf_tokens.json in this folder: the ids that llama.cpp makes of texts.

    .venv-goldens/bin/python engine/reference/testdata/record_gguf_tokens.py LLAMA_CPP

LLAMA_CPP is a checkout of llama.cpp (the sdist of llama-cpp-python has one in
vendor/). Its own code splits the texts into words: src/unicode.cpp is built with
g++, and the patterns of each pre-tokeniser are taken from src/llama-vocab.cpp. The
merges within a word are those of the Python package tokenizers, on a word at a
time and with no pre-tokeniser; a word that is a token is taken whole where
llama.cpp does that. The vocabularies are those of fixtures/tokenizer.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer, models

HERE = pathlib.Path(__file__).resolve().parent
TOKENIZER = HERE.parents[2] / "fixtures" / "tokenizer" / "testdata"

# The names of tokenizer.ggml.pre, llama.cpp's name of the case that has the
# patterns, and a vocabulary in which they show. Whether words are taken whole is
# said beside the names there.
PRE = {
    "smollm": ("SMOLLM", "smollm2", False),
    "gpt-2": ("GPT2", "gpt2", False),
    "llama-bpe": ("LLAMA3", "llama3", True),
    "smaug-bpe": ("SMAUG", "llama3", False),
    "qwen2": ("QWEN2", "qwen2", False),
    "default": (None, "gpt2", False),
}

SPECIAL = ("<|im_", "<|endoftext|>", "<|begin_of_text|>", "<|eot_id|>", "<think>", "</think>")

MAIN = r"""
#include "unicode.h"
#include <iostream>
#include <string>
int main() {
    const std::vector<std::string> patterns = {%s};
    std::string line;
    while (std::getline(std::cin, line)) {
        std::string text;
        for (size_t i = 0; i + 1 < line.size(); i += 2) text.push_back((char) std::stoi(line.substr(i, 2), nullptr, 16));
        for (const auto & word : unicode_regex_split(text, patterns, true)) std::cout << word << '\t';
        std::cout << '\n';
    }
}
"""


def patterns(source, name):
    """The C string literals of a case, as they stand in the source."""
    start = source.index("default:\n" if name is None else f"case LLAMA_VOCAB_PRE_TYPE_{name}:", source.index("switch (vocab.get_pre_type())"))
    body = source[source.index("regex_exprs = {", start) + len("regex_exprs = {") :]
    body = body[: body.index("};")]
    lines = [line.strip() for line in body.splitlines() if line.strip() and not line.strip().startswith("//")]
    for line in lines:
        assert re.fullmatch(r'"([^"\\]|\\.)*",', line), line
    return "\n".join(lines)


def texts():
    cases = json.loads((TOKENIZER / "cases.json").read_text(encoding="utf-8"))
    chosen = [t for t in cases["fixed"] + cases["random"][:150] if t and len(t) < 120 and not any(s in t for s in SPECIAL)]
    return sorted(set(chosen), key=chosen.index)


def main():
    src = pathlib.Path(sys.argv[1]) / "src"
    vocab_cpp = (src / "llama-vocab.cpp").read_text(encoding="utf-8")
    out = {"texts": texts(), "vocabulary": {}, "ids": {}}
    for pre, (name, vocabulary, whole) in PRE.items():
        out["vocabulary"][pre] = vocabulary
        model = json.loads((TOKENIZER / "tokenizers" / f"{vocabulary}.json").read_text(encoding="utf-8"))["model"]
        merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in model["merges"]]
        bpe = Tokenizer(models.BPE(vocab=model["vocab"], merges=merges))
        with tempfile.TemporaryDirectory() as tmp:
            main_cpp, program = pathlib.Path(tmp) / "main.cpp", pathlib.Path(tmp) / "split"
            main_cpp.write_text(MAIN % patterns(vocab_cpp, name), encoding="utf-8")
            subprocess.run(["g++", "-O1", "-std=c++17", f"-I{src}", "-o", program, main_cpp, src / "unicode.cpp", src / "unicode-data.cpp"], check=True)
            lines = "".join(t.encode().hex() + "\n" for t in out["texts"])
            words = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
        assert len(words) == len(out["texts"])
        out["ids"][pre] = []
        for line in words:
            ids = []
            for word in line.split("\t")[:-1]:
                if whole and word in model["vocab"]:
                    ids.append(model["vocab"][word])
                elif word:
                    ids += bpe.encode(word, add_special_tokens=False).ids
            out["ids"][pre].append(ids)
    text = json.dumps(out, ensure_ascii=True, separators=(",", ":")).replace("],[", "],\n[")
    (HERE / "gguf_tokens.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
