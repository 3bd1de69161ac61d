"""Trains the byte-level BPE of the fixture and writes it as a Hugging Face folder would hold it.

Normaliser (NFC), pre-tokeniser pattern and ChatML layout are Qwen2's, because the checks are about engines that serve
that family; the merges are learned here. Special tokens get the ids after the learned vocabulary, as in Qwen2.
"""

import json
from pathlib import Path

from corpus import DEFAULT_SYSTEM

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")

# Qwen2's published pattern (tokenizer.json of the Qwen2 family): contractions, letters with one leading mark, single
# digits, marks with one leading space, line ends, trailing space.
QWEN2_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

CHAT_TEMPLATE = (
    "{%- if not messages or messages[0].role != 'system' -%}"
    "{{- '<|im_start|>system\\n" + DEFAULT_SYSTEM + "<|im_end|>\\n' -}}"
    "{%- endif -%}"
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)


def train(docs, learned=2000):
    """A tokenizers.Tokenizer with `learned` ordinary tokens (256 bytes and merges) and the three special ones."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from tokenizers import trainers

    tok = Tokenizer(models.BPE())
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2_PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=learned, initial_alphabet=alphabet, show_progress=False)

    def plain():
        for doc in docs:
            for special in SPECIALS:
                doc = doc.replace(special, "\n")
            yield doc

    tok.train_from_iterator(plain(), trainer)
    if tok.get_vocab_size() != learned:
        raise SystemExit(f"tokenizer: {tok.get_vocab_size()} tokens learned, want {learned}")
    tok.add_special_tokens([AddedToken(s, normalized=False, special=True) for s in SPECIALS])
    return tok


def save(tok, folder, max_length=32768):
    """tokenizer.json and tokenizer_config.json, readable by AutoTokenizer."""
    folder = Path(folder)
    tok.save(str(folder / "tokenizer.json"))
    config = {
        "add_bos_token": False,
        "add_prefix_space": False,
        "additional_special_tokens": list(SPECIALS[1:]),
        "bos_token": None,
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "errors": "replace",
        "model_max_length": max_length,
        "pad_token": "<|endoftext|>",
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    }
    text = json.dumps(config, ensure_ascii=False, indent=2) + "\n"
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")
