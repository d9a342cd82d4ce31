"""One file of samples over time, read twice: what is in it, then its values for a few days at a time.

The same code reads usage.parquet (a series is a pod, keyed by namespace, service and pod) and nodes.parquet (a series
is a node). Memory is bounded by the window that is asked for, not by the file; row groups that lie outside the window
are not read, so files written in the order of time are read about once, and any other order gives the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from base.arrays import Bools, Floats, Floats32, Ints
from base.progress import Progress
from forecast.resources import RESOURCES
from forecast.sample_grid import SampleGrid
from trainer.history.cleaning import CleaningCause, Tally, clean_usage
from trainer.history.history_layout import LayoutFile, numbers, seconds

ABSENT = -2
"""Place of a series at a tick without a sample; -1 is a sample whose node is not known."""

QUARTER_SECONDS = 900
"""Rows are counted by quarters of an hour: the coarsest unit that local half hours of every time zone consist of."""

_EPOCH, _END = 946_684_800, 4_102_444_800  # 2000-01-01 and 2100-01-01, seconds since 1970
_STRAY_DAYS = 30  # rows further than this from the bulk of the file come from a wrong clock
_STEP_SAMPLE_ROWS = 1_000_000
_COMMON_STEPS = (10, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1200, 1800, 3600)
_COLUMNS = tuple(resource.column for resource in RESOURCES)

Ints32 = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class SeriesInventory:
    """What a file holds, without its values.

    keys          : one tuple of names per series, in the order of first appearance
    places        : names of the nodes the series were on, likewise
    first, last   : (n_series,) first and last time of each series, seconds since 1970
    quarter_rows  : rows in each quarter of an hour from first_quarter (in quarters since 1970); stray rows left out
    step_seconds  : usual distance of two samples of a series; None if no series has two
    phase_seconds : samples are taken at phase_seconds + k * step_seconds
    groups        : (n_groups, 4) part, row group, first and last second of each row group
    """

    keys: tuple[tuple[str, ...], ...]
    places: tuple[str, ...]
    first: Ints
    last: Ints
    first_quarter: int
    quarter_rows: Ints
    step_seconds: int | None
    phase_seconds: int
    groups: Ints


@dataclass(frozen=True, slots=True)
class SampleWindow:
    """Which part of a file is wanted, and on which grid.

    position : (series in the file,) index on the window's series axis, -1 = not wanted
    place    : (places in the file + 1,) index of the node in `capacity`; the last entry is -1, for "unknown"
    capacity : (n_days, n_nodes, n_resources), for finding impossible values; of one day where all days are alike
    """

    grid: SampleGrid
    n_series: int
    position: Ints
    place: Ints
    capacity: Floats


class _Names:
    """Numbers names in the order they appear."""

    def __init__(self) -> None:
        self.codes: dict[str | None, int] = {None: -1}
        self._dictionary: pa.Array | None = None
        self._of_dictionary: Ints = np.empty(0, dtype=np.int64)

    def of(self, column: pa.Array) -> Ints:
        """Code of each row, -1 for null."""
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string()).dictionary_encode()
        # Row groups of one export often carry the same dictionary: translating it is the slow part.
        if self._dictionary is None or not self._dictionary.equals(column.dictionary):
            names = column.dictionary.to_pylist()
            codes = [self.codes.setdefault(name, len(self.codes) - 1) for name in names]
            self._dictionary, self._of_dictionary = column.dictionary, np.array([*codes, -1], dtype=np.int64)
        indices = column.indices
        rows = (indices.fill_null(-1) if indices.null_count else indices).cast(pa.int64()).to_numpy()
        result: Ints = self._of_dictionary[rows]
        return result

    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self.codes if name is not None)


class SeriesFile:
    """A file of samples; `inventory` must run before `samples`."""

    def __init__(self, file: LayoutFile, *, key_columns: Sequence[str], place_column: str, tally: Tally) -> None:
        self._file, self._key_columns, self._place_column, self._tally = file, tuple(key_columns), place_column, tally
        self._names = {column: _Names() for column in {*key_columns, place_column}}
        self._ids: dict[tuple[int, ...], int] = {}
        self._groups: Ints = np.empty((0, 4), dtype=np.int64)
        self._n_read = 0
        self._missing = [column for column in _COLUMNS if column not in file.columns]

    def inventory(self, progress: Progress) -> SeriesInventory:
        """Read times and names of the whole file."""
        first, last = np.full(1024, _END, dtype=np.int64), np.full(1024, -1, dtype=np.int64)
        quarter_rows = np.zeros((_END - _EPOCH) // QUARTER_SECONDS, dtype=np.int64)
        sample: list[tuple[Ints, Ints]] = []
        n_sampled = n_done = 0
        groups = []
        name = self._file.name
        for part, group in self._file.groups():
            span = [_END, -1]
            for batch in self._file.batches(part, group, ["timestamp", *self._key_columns, self._place_column]):
                n_done += batch.num_rows
                series, time, dropped = self._rows(batch)
                self._names[self._place_column].of(batch.column(self._place_column))
                for cause, count in dropped.items():
                    self._tally.add(name, cause, count)
                progress(f"reading {name}", n_done, 2 * self._file.n_rows)
                if not len(time):
                    continue
                if len(self._ids) > len(first):
                    n_more = max(len(self._ids), 2 * len(first)) - len(first)
                    first = np.concatenate([first, np.full(n_more, _END)])
                    last = np.concatenate([last, np.full(n_more, -1)])
                np.minimum.at(first, series, time)
                np.maximum.at(last, series, time)
                low, high = int(time.min()), int(time.max())
                span = [min(span[0], low), max(span[1], high)]
                offset = (low - _EPOCH) // QUARTER_SECONDS
                counts = np.bincount((time - _EPOCH) // QUARTER_SECONDS - offset)
                quarter_rows[offset : offset + len(counts)] += counts
                if n_sampled < _STEP_SAMPLE_ROWS:
                    sample.append((series, time))
                    n_sampled += len(series)
            groups.append((part, group, *span))
        self._groups = np.array(groups, dtype=np.int64).reshape(-1, 4)
        self._tally.set(name, CleaningCause.MISSING_COLUMN, len(self._missing))
        n_stray = _drop_stray(quarter_rows)
        self._tally.set(name, CleaningCause.STRAY_TIME, n_stray)
        step, phase = _step_and_phase(sample)
        texts = [self._names[column].names() for column in self._key_columns]
        used = np.flatnonzero(quarter_rows)
        begin, end = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)
        return SeriesInventory(
            keys=tuple(tuple(names[code] for names, code in zip(texts, key, strict=True)) for key in self._ids),
            places=self._names[self._place_column].names(),
            first=first[: len(self._ids)],
            last=last[: len(self._ids)],
            first_quarter=begin + _EPOCH // QUARTER_SECONDS,
            quarter_rows=quarter_rows[begin:end].copy(),
            step_seconds=step,
            phase_seconds=phase,
            groups=self._groups,
        )

    def samples(self, window: SampleWindow, tally: Tally, progress: Progress) -> tuple[Floats32, Ints32]:
        """The values of a window.

        Returns samples (n_ticks, n_series, n_resources) float32 with NaN = not measured, and places (n_ticks, n_series)
        with the node of each sample, -1 = unknown, ABSENT = no row.
        """
        shape = (window.grid.n_ticks, window.n_series)
        samples = np.full((*shape, len(_COLUMNS)), np.nan, dtype=np.float32)
        places = np.full(shape, ABSENT, dtype=np.int32)
        # Half a step more on both sides: a sample belongs to the nearest tick.
        begin, end = window.grid.first - window.grid.step_seconds, window.grid.end
        near = self._groups[(self._groups[:, 3] >= begin) & (self._groups[:, 2] <= end)]
        for part, group, _, _ in near.tolist():
            columns = ["timestamp", *self._key_columns, self._place_column, *_COLUMNS]
            for batch in self._file.batches(part, group, columns):
                self._fill(batch, window, samples.reshape(-1, len(_COLUMNS)), places.reshape(-1), tally)
            self._n_read += self._file.group_rows(part, group)
            n_all = self._file.n_rows
            progress(f"reading {self._file.name}", min(n_all + self._n_read, 2 * n_all), 2 * n_all)
        return samples, places

    def _fill(
        self, batch: pa.RecordBatch, window: SampleWindow, samples: Floats32, places: Ints32, tally: Tally
    ) -> None:
        """Lay the rows of a batch on the window's cells: samples (n_cells, n_resources), places (n_cells,)."""
        series, time, _ = self._rows(batch, keep_all=True)
        tick = window.grid.ticks(time)
        column = np.append(window.position, -1)[series]
        keep: Bools = (tick >= 0) & (tick < window.grid.n_ticks) & (column >= 0)
        if not keep.any():
            return
        if not keep.all():
            rows = np.flatnonzero(keep)
            batch = batch.take(pa.array(rows))
            tick, column = tick[rows], column[rows]
        values = np.full((len(tick), len(_COLUMNS)), np.nan, dtype=np.float32)
        n_null = len(tick) * len(self._missing)
        for index, name in enumerate(_COLUMNS):
            if name not in self._missing:
                data = batch.column(name)
                n_null += data.null_count
                with np.errstate(over="ignore"):  # becomes infinite, which is counted below
                    values[:, index] = numbers(data)
        node = window.place[self._names[self._place_column].of(batch.column(self._place_column))]
        n_days, n_nodes, n_resources = window.capacity.shape
        limit = node if n_days == 1 else np.where(node < 0, -1, window.grid.tick_days()[tick] * n_nodes + node)
        limits = window.capacity.reshape(n_days * n_nodes, n_resources)
        for cause, count in clean_usage(values, n_null, limit, limits).items():
            tally.add(self._file.name, cause, count)
        cell = tick * window.n_series + column
        tally.add(self._file.name, CleaningCause.DUPLICATE, _count_repeated(cell, places))
        # Where a cell is named twice, NumPy keeps the value assigned last: the later row.
        samples[cell] = values
        places[cell] = node

    def _rows(self, batch: pa.RecordBatch, *, keep_all: bool = False) -> tuple[Ints, Ints, dict[CleaningCause, int]]:
        """Series and time of the usable rows of a batch (or of all rows, with series -1 for the others)."""
        time, missing = seconds(batch.column("timestamp"))
        valid: Bools = (time >= _EPOCH) & (time < _END)
        if missing is not None:
            valid &= ~missing
        codes = [self._names[column].of(batch.column(column)) for column in self._key_columns]
        named: Bools = np.logical_and.reduce([code >= 0 for code in codes])
        usable = valid & named
        dropped = {}
        if not usable.all():
            dropped = {
                CleaningCause.NO_TIME: int(np.count_nonzero(~valid)),
                CleaningCause.NO_NAME: int(np.count_nonzero(valid & ~named)),
            }
            rows = np.flatnonzero(usable)
            series = self._series([code[rows] for code in codes])
            if not keep_all:
                return series, time[rows], dropped
            everywhere = np.full(len(time), -1, dtype=np.int64)
            everywhere[rows] = series
            return everywhere, time, dropped
        return self._series(codes), time, dropped

    def _series(self, codes: list[Ints]) -> Ints:
        """Number of the series of each row; unknown keys get the next number."""
        if not len(codes[0]):
            return np.empty(0, dtype=np.int64)
        # The pod comes last among the key columns: it nearly always settles the others.
        key = codes[-1]
        for code in reversed(codes[:-1]):
            key = _combine(key, code)
        size = int(key.max()) + 1
        representative = np.full(size, -1, dtype=np.int64)
        representative[key] = np.arange(len(key))
        distinct = np.flatnonzero(representative >= 0)
        rows = representative[distinct]
        number = np.empty(size, dtype=np.int64)
        number[distinct] = [
            self._ids.setdefault(names, len(self._ids))
            for names in zip(*(code[rows].tolist() for code in codes), strict=True)
        ]
        result: Ints = number[key]
        return result


def _combine(key: Ints, code: Ints) -> Ints:
    """A number for each distinct pair; `key` itself where it settles `code`, which is the usual and fast case."""
    representative = np.empty(int(key.max()) + 1, dtype=np.int64)
    representative[key] = np.arange(len(key))
    if np.array_equal(code[representative[key]], code):
        return key
    pair = key * (int(code.max()) + 1) + code
    combined: Ints = np.unique(pair, return_inverse=True)[1]
    return combined


def _count_repeated(cell: Ints, cell_places: Ints32) -> int:
    """How many of the rows share their cell with an earlier row; marks the cells on the way (they are filled next)."""
    earlier = cell_places[cell] != ABSENT
    cell_places[cell] = np.arange(len(cell))
    last_of_cell = cell_places[cell] == np.arange(len(cell))
    return len(cell) - int(np.count_nonzero(last_of_cell & ~earlier))


def _drop_stray(quarter_rows: Ints) -> int:
    """Zero the counts that lie more than _STRAY_DAYS from the bulk of the rows; returns how many rows that were."""
    used = np.flatnonzero(quarter_rows)
    if not len(used):
        return 0
    cuts = np.flatnonzero(np.diff(used) > _STRAY_DAYS * 86_400 // QUARTER_SECONDS) + 1
    bounds = [0, *cuts.tolist(), len(used)]
    clusters = [(int(used[a]), int(used[b - 1]) + 1) for a, b in pairwise(bounds)]
    begin, end = max(clusters, key=lambda cluster: int(quarter_rows[cluster[0] : cluster[1]].sum()))
    stray = int(quarter_rows.sum() - quarter_rows[begin:end].sum())
    quarter_rows[:begin] = 0
    quarter_rows[end:] = 0
    return stray


def _step_and_phase(sample: list[tuple[Ints, Ints]]) -> tuple[int | None, int]:
    """Usual distance of two samples of one series, and where in the step they lie."""
    if not sample:
        return None, 0
    series = np.concatenate([part for part, _ in sample])
    time = np.concatenate([part for _, part in sample])
    order = np.lexsort((time, series))
    series, time = series[order], time[order]
    distance = np.diff(time)[np.diff(series) == 0]
    distance = distance[distance > 0]
    if not len(distance):
        return None, 0
    median = float(np.median(distance))
    common = min(_COMMON_STEPS, key=lambda step: abs(step - median))
    # Scrapes jitter by a second or two around the step that was configured.
    step = common if abs(common - median) <= max(2.0, 0.02 * common) else max(1, round(median))
    phases, counts = np.unique(time % step, return_counts=True)
    return step, int(phases[counts.argmax()])
