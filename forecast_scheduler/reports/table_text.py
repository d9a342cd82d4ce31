"""The tables of a command as text for other programs: CSV for pandas and spreadsheets, Markdown for tickets and wikis.

Both are made of the tables that the terminal shows, so that no command writes its own.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import Final

from rich.table import Table
from rich.text import Text

from scorer.load_scale import UNKNOWN

SECTION: Final = "table"
"""The first column of CSV."""

_NUMBER: Final = re.compile(r"([+-]?[\d,]*\.?\d+)( ?%)?")
_BAR: Final = "\u2588"
_BECOMES: Final = "\u2192 "
_FORMULA: Final = tuple("=+-@\t\r")
"""What a spreadsheet would compute. Source: https://owasp.org/www-community/attacks/CSV_Injection"""


def csv_text(tables: Iterable[Table]) -> str:
    """Return one rectangle for all tables: the first column names the table of a row, the others are the columns of
    all of them, and a row leaves those of the other tables empty.

    Numbers have no separators, shares are fractions, and what is not known is empty. Names of tables end at the first
    comma or colon of their titles.
    """
    rows: list[dict[str, str]] = []
    columns = {SECTION: None}
    for table in tables:
        title, heads = _title(table), heads_of(table)
        short = re.split("[,:]", title)[0]
        title = title if short in {row[SECTION] for row in rows} else short
        columns |= dict.fromkeys(heads)
        rows += ({SECTION: title} | dict(zip(heads, map(_value, cells), strict=True)) for cells in cells_of(table))
    if not rows:
        return ""
    file = io.StringIO()
    writer = csv.DictWriter(file, list(columns), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def markdown_text(part: Table | str) -> str:
    """Return a table with its title as a heading, or a line as a paragraph."""
    if isinstance(part, str):
        return f"{_escaped(part)}\n\n"
    right = [column.justify == "right" for column in part.columns]
    lines = [
        [_plain(column.header) for column in part.columns],
        ["---:" if one else "---" for one in right],
        *cells_of(part),
    ]
    cells = (" | ".join(_escaped(cell) for cell in line) for line in lines)
    title = _escaped(_title(part))
    return "\n".join([*([f"### {title}", ""] if title else []), *(f"| {line} |" for line in cells)]) + "\n\n"


def cells_of(table: Table) -> Iterator[list[str]]:
    """Yield the rows, as plain text."""
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        yield [_plain(cell) for cell in cells]


def _title(table: Table) -> str:
    return _plain(table.title or "")


def heads_of(table: Table) -> list[str]:
    """Return one name for each column: one without a head belongs to the one before it, and no two are the same."""
    heads: list[str] = []
    for column in table.columns:
        name = _plain(column.header).replace("\n", " ") or (heads[-1] if heads else "name")
        again = sum(head == name or head.startswith(f"{name} (") for head in heads)
        heads.append(f"{name} ({again + 1})" if name in heads or name == SECTION else name)
    return heads


def _plain(cell: object) -> str:
    text = cell.plain if isinstance(cell, Text) else Text.from_markup(str(cell)).plain
    return text.strip()


def _value(cell: str) -> str:
    """A cell as programs read it."""
    cell = cell.removeprefix(_BECOMES).replace("\n", " ")
    if cell == UNKNOWN or not cell.strip(_BAR):
        return ""
    if found := _NUMBER.fullmatch(cell):
        number, is_share = found[1].replace(",", ""), found[2]
        return f"{float(number) / 100:.6g}" if is_share else number
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _escaped(text: str) -> str:
    """For Markdown: a cell stays one, and a name such as `a_b` has no emphasis."""
    return re.sub(r"([\\`*_{}\[\]<|])", r"\\\1", text).replace("\n", "<br>")
