"""Reads limit_hits.parquet: how often limits held pods back, by half hour. Histories without it stay readable.

A row says what CFS periods and OOM kills of one pod were counted in the half hour that begins at `timestamp`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa

from base.arrays import Floats, Ints
from forecast.aggregation import PodTable
from forecast.calendar import SLOTS_PER_DAY, Calendar
from forecast.limit_hits import PodHits
from trainer.history.cleaning import CleaningCause, Tally
from trainer.history.history_layout import Layout, LayoutFile, numbers, seconds

THROTTLED_SHARE: Final = "throttled_share"
OOM_BYTES: Final = "oom_memory_bytes"
_KEYS: Final = ("namespace", "pod")
_LATEST: Final = 4_102_444_800  # 2100-01-01, seconds since 1970


def read_limit_hits(
    directory: Path, calendar: Calendar, days: Sequence[date], pods: PodTable, tally: Tally
) -> PodHits | None:
    """What the file says of the pods and local days of a history; None if there is none. Raises InputError."""
    path = directory / Layout.limit_hits
    if not path.is_file() and not any(path.rglob("*.parquet")):
        return None
    file = LayoutFile.open(directory, Layout.limit_hits, required=("timestamp", *_KEYS), text=_KEYS)
    row_of = {pod: row for row, pod in enumerate(pods.pods)}
    seen = np.zeros((len(pods.services), len(days)), dtype=np.bool_)
    found: list[tuple[Ints, Ints, Floats]] = []
    for part, group in file.groups():
        for batch in file.batches(part, group, ["timestamp", *_KEYS, THROTTLED_SHARE, OOM_BYTES]):
            pod, slot, values = _rows(batch, calendar, days, row_of, tally)
            counted = np.isfinite(values[:, 0])
            seen[pods.service[pod[counted]], slot[counted] // SLOTS_PER_DAY] = True
            held = (values[:, 0] > 0) | np.isfinite(values[:, 1])
            found.append((pod[held], slot[held], values[held]))
    nothing = np.empty(0, dtype=np.int64)
    pod = np.concatenate([nothing, *(one[0] for one in found)])
    slot = np.concatenate([nothing, *(one[1] for one in found)])
    values = np.concatenate([np.empty((0, 2)), *(one[2] for one in found)])
    # Rows that repeat a half hour, as the clock does once a year: the larger value counts.
    n_slots = len(days) * SLOTS_PER_DAY
    cells, which = np.unique(pod * n_slots + slot, return_inverse=True)
    both, unmeasured = (np.full((len(cells), 2), np.nan, dtype=np.float32) for _ in range(2))
    np.fmax.at(both, which, values.astype(np.float32))
    return PodHits(cells // n_slots, cells % n_slots, both[:, 0], unmeasured[:, 0], both[:, 1], seen)


def _rows(
    batch: pa.RecordBatch, calendar: Calendar, days: Sequence[date], row_of: Mapping[str, int], tally: Tally
) -> tuple[Ints, Ints, Floats]:
    """Pod, slot and (n_rows, 2) values of the rows that are of our pods and days."""
    time, missing = seconds(batch.column("timestamp"))
    time = np.where((time > 0) & (time < _LATEST) & (True if missing is None else ~missing), time, 0)
    day, slot_of_day = calendar.local_days_and_slots(pd.to_datetime(time, unit="s", utc=True))
    day = day - days[0].toordinal()
    pod = _pods(batch, row_of)
    kept = np.flatnonzero((pod >= 0) & (day >= 0) & (day < len(days)))
    values = np.full((batch.num_rows, 2), np.nan)
    for column, name in enumerate((THROTTLED_SHARE, OOM_BYTES)):
        if name in batch.schema.names:
            values[:, column] = numbers(batch.column(name))
    for cause, broken in (
        (CleaningCause.NOT_FINITE, np.isinf(values)),
        (CleaningCause.NEGATIVE, values < 0),
    ):
        tally.add(Layout.limit_hits, cause, int(np.count_nonzero(broken[kept])))
        values[broken] = np.nan
    values[:, 0] = np.minimum(values[:, 0], 1.0)  # two counters that were read at different moments
    return pod[kept], (day * SLOTS_PER_DAY + slot_of_day)[kept], values[kept]


def _pods(batch: pa.RecordBatch, row_of: Mapping[str, int]) -> Ints:
    """Row of each pod in the table, -1 = not one of ours: (n_rows,). Each different pair is looked up once."""
    names, codes = [], []
    for key in _KEYS:
        column = batch.column(key)
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string()).dictionary_encode()
        names.append([*column.dictionary.to_pylist(), None])
        codes.append(column.indices.fill_null(len(column.dictionary)).cast(pa.int64()).to_numpy())
    pairs, which = np.unique(codes[0] * len(names[1]) + codes[1], return_inverse=True)
    rows = [row_of.get(f"{names[0][a]}/{names[1][b]}", -1) for a, b in (divmod(pair, len(names[1])) for pair in pairs)]
    return np.array(rows, dtype=np.int64)[which]
