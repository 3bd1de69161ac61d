"""The training text: doc comments of exported declarations in Go's standard library.

One concern: turning a Go source tree into a list of (name, comment) pairs and those into training documents. The
order is that of the sorted paths, so the same Go release gives the same bytes; `digest` states which text was used.
"""

import hashlib
import random
import re
from pathlib import Path

DEFAULT_SYSTEM = "You are Plum, a small model made for tests. You are a helpful assistant."

SYSTEMS = (
    DEFAULT_SYSTEM,
    "Answer in one sentence.",
    "You write documentation for Go.",
    "You are terse.",
)

ASKS = (
    "What does {name} do?",
    "Document {name}.",
    "Explain {name} to a beginner.",
    "{name}?",
)

# A run of line comments that touches a declaration at the left margin. The name is the first exported identifier
# after an optional receiver, so methods count as well.
_DECLARATION = re.compile(
    r"(?P<doc>(?:^//[^\n]*\n)+)^(?:func(?: \([^)]*\))?|type|var|const) (?P<name>[A-Z]\w*)", re.MULTILINE
)


def _plain(doc):
    """The comment without its markers; lines that are directives (//go:..., //export) are not documentation."""
    lines = [line[2:] for line in doc.splitlines() if not re.match(r"//(?:go:|export |line |nolint)", line)]
    return "\n".join(line.removeprefix(" ").rstrip() for line in lines).strip()


def comments(goroot, shortest=40, longest=1500):
    """Every (qualified name, comment) below goroot/src, once each; internal, vendored and test files left out."""
    found, seen = [], set()
    root = Path(goroot) / "src"
    for path in sorted(root.rglob("*.go")):
        parts = path.relative_to(root).parts
        if path.name.endswith("_test.go") or {"testdata", "vendor", "internal", "cmd"} & set(parts):
            continue
        for match in _DECLARATION.finditer(path.read_text(encoding="utf-8")):
            text = _plain(match["doc"])
            if shortest <= len(text) <= longest and text not in seen:
                seen.add(text)
                found.append((f"{parts[-2] if len(parts) > 1 else 'go'}.{match['name']}", text))
    if not found:
        raise SystemExit(f"corpus: no doc comments below {root}")
    return found


def documents(pairs, seed):
    """Training documents: each comment once plain, and once as the answer of a ChatML conversation.

    About a third of the conversations go on with a second turn, so that `<|im_end|>` is not always the end.
    """
    rng = random.Random(seed)
    docs = [text + "<|endoftext|>" for _, text in pairs]
    for i, (name, text) in enumerate(pairs):
        system = SYSTEMS[0] if rng.random() < 0.6 else rng.choice(SYSTEMS[1:])
        turns = [(name, text)]
        if rng.random() < 0.35:
            turns.append(pairs[(i + 1) % len(pairs)])
        talk = f"<|im_start|>system\n{system}<|im_end|>\n"
        for who, answer in turns:
            ask = rng.choice(ASKS).format(name=who)
            talk += f"<|im_start|>user\n{ask}<|im_end|>\n<|im_start|>assistant\n{answer}<|im_end|>\n"
        docs.append(talk + "<|endoftext|>")
    rng.shuffle(docs)
    return docs


def digest(docs):
    """SHA-256 over all documents, length-free because a NUL never occurs in them."""
    return hashlib.sha256("\0".join(docs).encode()).hexdigest()
