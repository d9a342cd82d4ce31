"""What the pages for people and their assistants hold: command lines, links, and paths of files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_AT_THE_ROOT = ("README.md", "CONTRIBUTING.md", "EMERGENCY.md", "AGENTS.md", "llms.txt")
PAGES = tuple(sorted([*(ROOT / name for name in _AT_THE_ROOT), *(ROOT / "docs").rglob("*.md")]))

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """Of code. language: after its backticks; before: the paragraph in front of it; text: what is inside."""

    language: str
    before: str
    text: str


def text_of(page: Path) -> str:
    """All of it."""
    return page.read_text(encoding="utf-8")


def blocks(text: str) -> Iterator[Block]:
    """All blocks of a page, in order."""
    for found in _BLOCK.finditer(text):
        before = text[: found.start()].rstrip().rpartition("\n\n")[2]
        yield Block(found[1], before, found[2])


def commands(block: Block) -> list[str]:
    """Command lines of a console block, with continued lines made one; those of a synopsis go on with an option."""
    lines = re.sub(r"\\\n|\n +(?=\[?--)", " ", block.text).splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
