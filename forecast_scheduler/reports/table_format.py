"""Tables for the terminal, and how they write shares, numbers, moments and durations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from rich.markup import escape
from rich.table import Table

from scorer.load_scale import UNKNOWN

_PREFIXES = ((2.0**40, "Ti"), (2.0**30, "Gi"), (2.0**20, "Mi"), (2.0**10, "ki"))


def titled_table(title: str, *columns: str, wrap_first: bool = True) -> Table:
    """A table without rows; a column ">pods" is "pods", set to the right.

    On a narrow terminal a long word goes on in the next line: cut off, services of one namespace would look alike, and
    1500m like 15.

    wrap_first : whether names in the first column may be wrapped
    """
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        is_right = column.startswith(">")
        name = column[1:] if is_right else column
        keeps_lines = not number and not wrap_first
        overflow: Literal["ellipsis", "fold"] = "ellipsis" if keeps_lines else "fold"
        table.add_column(name, justify="right" if is_right else "left", no_wrap=keeps_lines, overflow=overflow)
    return table


def number(value: float | None) -> str:
    """Three digits after the point; a dash if it is not known (None or NaN)."""
    return UNKNOWN if value is None or value != value else f"{value:.3f}"


def amount(value: float, unit: str) -> str:
    """In real units: 4.21 cores, 12.3 GiB, 20.4 MB/s."""
    if unit == "cores":
        return f"{value:.2f} cores"
    if unit == "bytes":
        for size, prefix in _PREFIXES:
            if abs(value) >= size:
                return f"{value / size:.1f} {prefix}B"
        return f"{value:.0f} B"
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.1f} {prefix}B/s"
    return f"{value:.0f} B/s"


def local_minute(text: str | None) -> str:
    """An ISO 8601 moment to the minute, in the offset that the server wrote; a dash for None."""
    return UNKNOWN if text is None else f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M}"


def short_duration(seconds: float) -> str:
    """In minutes, or in seconds below a minute and a half."""
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def age(seconds: float) -> str:
    """As people say it: in seconds or minutes, from two hours on in hours, from two days on in days."""
    hours = seconds / 3600
    return short_duration(seconds) if hours < 2 else f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} days"


def plain(text: str) -> str:
    """A foreign name as a cell: neither markup nor control characters of a terminal."""
    return escape(printable(text))


def printable(text: str) -> str:
    """A foreign name without control characters of a terminal, for a line without markup."""
    return "".join(c if c.isprintable() else "?" for c in text)


def cell(value: object) -> str:
    """Anything as a cell; a dash for None."""
    return UNKNOWN if value is None else plain(str(value))


class Column(NamedTuple):
    """A column of a table: its head (see titled_table), a key of the rows or what it shows of one, and in which form.

    of : '' = the head is the key
    """

    name: str
    of: str | Callable[[Any], object] = ""
    form: Callable[[Any], str] = cell

    def shown(self, row: Any) -> str:
        """Return the cell of a row."""
        of = self.of or self.name.removeprefix(">")
        return self.form(of(row) if callable(of) else row[of])


def table_of(title: str, columns: Sequence[Column], rows: Iterable[Any], *, wrap_first: bool = True) -> Table:
    """Return a table with a line for each of `rows`."""
    table = titled_table(title, *(column.name for column in columns), wrap_first=wrap_first)
    for row in rows:
        table.add_row(*(column.shown(row) for column in columns))
    return table
