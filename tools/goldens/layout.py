"""Where things lie, relative to the repository's root. The only module that knows the root's absolute path."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = "tools/goldens"
CASE_SUFFIXES = (".json", ".layers.bin", ".logits.bin")


@dataclass(frozen=True)
class Layout:
    """The paths of one golden set below a root (the repository's, or a test's)."""

    root: Path = ROOT
    name: str = "qwen2-trained"

    @property
    def checkpoint(self):
        return f"fixtures/{self.name}"

    @property
    def goldens(self):
        return f"golden/{self.name}"

    @property
    def manifest(self):
        return f"golden/{self.name}.manifest.json"

    @property
    def prompts_written(self):
        return f"{self.checkpoint}/prompts.json"

    prompts_source = f"{TOOL}/prompts.json"
    pins = f"{TOOL}/pins.json"

    def at(self, relative):
        return self.root / relative
