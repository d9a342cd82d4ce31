"""`make size`: the figures of the tree that CONTRIBUTING.md wants to fall.

    python -m testing.size

Counts tracked files as they are now: lines of Python by part, files, settings keys, words of Markdown, public names.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_PARTS: Final = {"tests": ("tests/", "testing/"), "benchmarks": ("benchmarks/", "data/")}
"""First folders by part; all other Python is the product."""


def sizes(root: Path) -> dict[str, int]:
    """Return each figure by its name. root: of a clone with git."""
    said = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout
    tracked = [name for name in said.splitlines() if (root / name).is_file()]
    python = {name: (root / name).read_text(encoding="utf-8") for name in tracked if name.endswith(".py")}
    product = {name: text for name, text in python.items() if _part(name) == "product"}
    pages = [(root / name).read_text(encoding="utf-8") for name in tracked if name.endswith(".md")]
    settings = (root / "docs" / "use" / "settings.md").read_text(encoding="utf-8")
    return {
        "product: lines of Python": _lines(python, "product"),
        "tests/ and testing/: lines": _lines(python, "tests"),
        "benchmarks/ and data/: lines": _lines(python, "benchmarks"),
        "tracked files": len(tracked),
        "product: files of Python": len(product),
        "settings keys": len(re.findall(r"^\| `[^`]+` *\|", settings, re.MULTILINE)),
        "Markdown: words": sum(len(page.split()) for page in pages),
        "Markdown: pages": len(pages),
        "product: public classes and functions": sum(_public_names(text) for text in product.values()),
    }


def _part(name: str) -> str:
    return next((part for part, folders in _PARTS.items() if name.startswith(folders)), "product")


def _lines(python: dict[str, str], part: str) -> int:
    return sum(len(text.splitlines()) for name, text in python.items() if _part(name) == part)


def _public_names(source: str) -> int:
    """Return how many top-level classes and functions have no leading underscore."""
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return sum(isinstance(node, kinds) and not node.name.startswith("_") for node in ast.parse(source).body)


if __name__ == "__main__":
    for figure, value in sizes(ROOT).items():
        print(f"{value:>9,}  {figure}")
