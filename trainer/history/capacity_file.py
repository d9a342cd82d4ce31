"""What nodes can do, and since when: capacity.parquet, with one row per node or one for each day of a change.

A row is what its node had last on its day (UTC). When within the day it changed is not known, so the day is judged by
the largest of what held before and of what its rows say: no honest value is dropped. A local day is judged by the
largest of the UTC days that it touches.

Null in CPU, memory or allocatable means unknown: what is known of other days holds. Disk, network and log
come from settings, which are corrected and taken back: there the last row holds for all days, a larger one of an
earlier day for its days.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from base.arrays import Bools, Floats, Ints
from base.errors import InputError
from forecast.assumed_capacity import ASSUMED_RESOURCES
from forecast.calendar import Calendar
from forecast.resources import RESOURCES
from trainer.history.cleaning import Tally
from trainer.history.layout import LayoutFile, positive

DAY: Final = "day"
COLUMNS: Final = (*(resource.column for resource in RESOURCES), "allocatable_cpu_cores", "allocatable_memory_bytes")
_OF_SETTINGS: Final = list(ASSUMED_RESOURCES)
_UNDATED: Final = 0
"""Day of a row without one: it holds from ever on."""


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """What one node can do, in order of time.

    day    : (n_rows,) proleptic ordinal of the UTC day of each row, 0 = from ever on
    values : (n_rows, len(COLUMNS)) base units, each column known throughout or NaN throughout (not a limit, unknown)
    """

    day: Ints
    values: Floats

    @property
    def last(self) -> Floats:
        """What is known last: (len(COLUMNS),)."""
        last: Floats = self.values[-1]
        return last

    @property
    def changes(self) -> bool:
        return not np.array_equal(self.values, np.broadcast_to(self.last, self.values.shape), equal_nan=True)

    def largest(self, first: Ints, end: Ints) -> Floats:
        """The largest that held at any time of some spans of UTC days: (n_spans, len(COLUMNS)).

        first, end : (n_spans,) ordinals, end exclusive
        """
        # The row that holds when the span begins, the first of all where there is none, and those of its days.
        begin = np.maximum(np.searchsorted(self.day, first, side="left") - 1, 0)
        stop = np.maximum(np.searchsorted(self.day, end, side="left"), begin + 1)
        beyond = np.full((1, self.values.shape[1]), -np.inf)  # so that `stop` may be the end
        bounds = np.stack([begin, stop], axis=1).ravel()
        of_spans: Floats = np.maximum.reduceat(np.concatenate([self.values, beyond]), bounds)[::2]
        return of_spans


def read_capacity(file: LayoutFile, tally: Tally) -> Mapping[str, NodeCapacity]:
    """Capacities and allocatable CPU and memory by node. Raises InputError where `day` is not a date."""
    names: list[str | None] = []
    days: list[Ints] = []
    values: list[Floats] = []
    for path, table in file.read_parts(["node", DAY, *COLUMNS]):
        names += table["node"].to_pylist()
        days.append(_days(table, path))
        values.append(positive(table, COLUMNS, file.name, tally))
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        if name is not None:
            rows.setdefault(name, []).append(row)
    day, value = np.concatenate(days), np.concatenate(values)
    return {name: _of_node(day[of_node], value[of_node]) for name, of_node in rows.items()}


def daily_capacities(
    nodes: Sequence[NodeCapacity | None], calendar: Calendar, days: Sequence[date]
) -> dict[int, Floats]:
    """What local days are judged by, of nodes whose capacity changed: row of the node -> (n_resources, n_days)."""
    midnights = [calendar.midnight(day) for day in (*days, days[-1] + timedelta(days=1))]
    first = np.array([at.date().toordinal() for at in midnights[:-1]])
    end = np.array([(at - timedelta(microseconds=1)).date().toordinal() + 1 for at in midnights[1:]])
    n_resources = len(RESOURCES)
    return {
        row: node.largest(first, end)[:, :n_resources].T
        for row, node in enumerate(nodes)
        if node is not None and node.changes
    }


def _days(table: pa.Table, path: Path) -> Ints:
    """Day of each row: of the column, else of the name of the file, as those of our own history have it."""
    if DAY not in table.column_names:
        return np.full(table.num_rows, _day_of_name(path.stem))
    column = table[DAY]
    if not (pa.types.is_date(column.type) or pa.types.is_timestamp(column.type) or pa.types.is_null(column.type)):
        raise InputError(
            f"{path}: column {DAY} is {column.type}, it must be a Parquet date: write days such as 2026-11-20"
        )
    since_epoch = column.cast(pa.timestamp("ms")).cast(pa.int64()).to_numpy()
    known = np.isfinite(since_epoch)  # null became NaN
    ordinal = np.where(known, since_epoch, 0.0) // 86_400_000 + date(1970, 1, 1).toordinal()
    return np.where(known, ordinal, _UNDATED).astype(np.int64)


def _day_of_name(stem: str) -> int:
    try:
        return date.fromisoformat(stem).toordinal()
    except ValueError:
        return _UNDATED


def _of_node(day: Ints, values: Floats) -> NodeCapacity:
    """The rows of one node in order of time, of those without a day only the last."""
    undated = np.flatnonzero(day == _UNDATED)
    kept: Bools = day != _UNDATED
    kept[undated[-1:]] = True
    day, values = day[kept], values[kept]
    order = np.argsort(day, kind="stable")
    day, values = day[order], values[order]
    last = values[-1].copy()
    values = _carried(_carried(values)[::-1])[::-1]
    values[:, _OF_SETTINGS] = np.where(np.isfinite(last), np.fmax(values, last), np.nan)[:, _OF_SETTINGS]
    return NodeCapacity(day, values)


def _carried(values: Floats) -> Floats:
    """NaN takes the last known value before it in its column: (n_rows, n_columns)."""
    row = np.where(np.isfinite(values), np.arange(len(values))[:, None], 0)
    return np.take_along_axis(values, np.maximum.accumulate(row, axis=0), axis=0)
