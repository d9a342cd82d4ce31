"""Prices from a CSV file.

    nodes,per_month,currency
    m5.xlarge,168.00,EUR
    m5.xlarge spot,61.50,EUR
    "8 cores, 32 GiB",290,EUR
    pool=gpu,1100,EUR

`nodes` is what `prices.per_hour` has as keys. The price stands under `per_hour` or `per_month`, with a point before the
fraction. Other columns are not read. A row that cannot be used stops the command: a price that is left out without a
word would make every sum wrong.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from autoscaling.prices.given_prices import GivenPrices
from autoscaling.prices.node_prices import HOURS_PER_MONTH
from base.errors import InputError
from base.yaml_reader import UndecodableText, decoded_text

_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_HOURS: Final = {"per_hour": 1.0, "per_month": HOURS_PER_MONTH}
_LARGEST: Final = 1e6
"""An hour of a node that costs more is a mistake: the dearest of any cloud cost some hundred dollars."""

_NAMED: Final = 5
_DELIMITERS: Final = ",;\t"


def read_price_file(path: Path, currency: str) -> GivenPrices:
    """Read the file. currency: of the report. Raises InputError, which names the lines that cannot be used."""
    try:
        text = decoded_text(path.read_bytes())
    except OSError as error:
        raise InputError(f"price file {path} cannot be read: {error.strerror or error}") from error
    except UndecodableText as error:
        raise InputError(f"price file {path} cannot be read: {error}") from error
    return GivenPrices(parse_prices(text, currency, str(path)), f"file {path.name}")


def parse_prices(text: str, currency: str, name: str) -> dict[str, float]:
    """Prices of an hour by key. name: of the file, for errors. Raises InputError."""
    lines = text.removeprefix("\ufeff").splitlines()
    head = lines[0] if lines else ""
    rows = csv.reader(lines, delimiter=max(_DELIMITERS, key=head.count), strict=True)
    try:
        columns = [column.strip().lower() for column in next(rows, [])]
        unit = [column for column in columns if column in _HOURS]
        if "nodes" not in columns or "currency" not in columns or len(unit) != 1:
            raise InputError(
                f"price file {name} has the columns {', '.join(map(repr, columns)) or 'of an empty line'}: it needs "
                "nodes, currency, and one of per_hour and per_month"
            )
        found, wrong = dict[str, float](), list[str]()
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            try:
                key, price = _row(dict(zip(columns, (cell.strip() for cell in row), strict=False)), unit[0], currency)
                if key in found:
                    raise ValueError(f"{key!r} has a price already, further up")
                found[key] = price
            except (ValueError, InputError) as error:
                wrong.append(f"line {rows.line_num}: {error}")
    except csv.Error as error:
        raise InputError(f"price file {name}, line {rows.line_num}: {error}: write it as CSV") from error
    if wrong:
        raise InputError(f"price file {name} cannot be used: {'; '.join(_some(wrong))}")
    return found


def _row(cells: dict[str, str], unit: str, currency: str) -> tuple[str, float]:
    """Return the key and the price of an hour of one row. Raises ValueError, which says what is wrong with it."""
    key = cells.get("nodes", "")
    if not key:
        raise ValueError("nodes is empty: write an instance type, a node group or labels")
    written = cells.get("currency", "")
    if written != currency:
        raise ValueError(
            f"currency is {written!r}, the report is in {currency}: nothing is converted, so write one of them, or set "
            "prices.currency"
        )
    text = cells.get(unit, "")
    price = float(text) / _HOURS[unit] if _NUMBER.fullmatch(text) else math.nan
    if not price <= _LARGEST:
        raise ValueError(f"{unit} is {text!r}: write a number of at least 0, without separators, such as 1234.50")
    if "=" in key:
        GivenPrices({key: price}, "")
    return key, price


def _some(wrong: list[str]) -> Iterator[str]:
    yield from wrong[:_NAMED]
    if len(wrong) > _NAMED:
        yield f"and {len(wrong) - _NAMED} more lines"
