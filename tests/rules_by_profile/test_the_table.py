"""The table of docs/use/node-rules.md: a test for each cell that says yes, a reason in each that says no."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Final

from tests.rules_by_profile.cells import ELSEWHERE, TESTED
from tests.rules_by_profile.worlds import PLACES

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "use" / "node-rules.md").read_text()


def table() -> dict[tuple[str, str], str]:
    """Text by (rule, column)."""
    (section,) = re.findall(r"^## Rules by profile\n(.*?)^## ", PAGE, flags=re.DOTALL | re.MULTILINE)
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in _lines(section))
    assert head == ["rule", "online", "GPU", "job", "extender"]
    columns = [name.lower() for name in head[1:]]
    assert tuple(columns) == PLACES
    return {(row[0], column): cell for row in rows for column, cell in zip(columns, row[1:], strict=True)}


def _lines(section: str) -> list[str]:
    return [line for line in section.splitlines() if line.startswith("|")]


def cells_with_tests() -> dict[tuple[str, str], str]:
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        importlib.import_module(f"tests.rules_by_profile.{file.stem}")
    assert not TESTED.keys() & ELSEWHERE.keys()
    return TESTED | ELSEWHERE


def test_every_cell_that_says_yes_has_a_test_and_no_other_has_one() -> None:
    says_yes = {cell for cell, text in table().items() if re.match(r"yes\b", text)}
    assert says_yes == cells_with_tests().keys()


def test_every_other_cell_says_why_not() -> None:
    others = {cell: text for cell, text in table().items() if not re.match(r"yes\b", text)}
    assert {cell: text for cell, text in others.items() if not re.fullmatch(r"no: .{15,}", text)} == {}


def test_tests_elsewhere_are_there() -> None:
    for where in ELSEWHERE.values():
        file, name = where.split("::")
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE), where
