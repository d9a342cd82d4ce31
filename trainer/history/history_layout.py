"""The files of a history directory: names, columns, types, and one clear sentence when one of them cannot be read.

    usage.parquet     timestamp, namespace, service, pod, node and usage columns    one row per pod and time
    nodes.parquet     timestamp, node and usage columns                             one row per node and time
    pods.parquet      namespace, pod and requests                                   one row per pod
    capacity.parquet  node, capacities, optionally allocatable and day              one row per node (and day)
    limit_hits.parquet  optional: timestamp, namespace, pod and how limits held it back (limit_hits_file)
    history.json      optional: time_zone, holiday_country, step ("5m", "30s" or a number of seconds)
    events.yaml       optional: a user's calendar of days that differ (events_file)
    moved.yaml        optional: services that had another name or came from another cluster (moved_file)

`usage.parquet` may also be a directory of Parquet files with the same columns, and so may the others. What the rows
mean is read in `series_file` and `files`.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from base.arrays import Floats, Ints
from base.errors import InputError
from forecast.calendar import Calendar
from forecast.sample_grid import MAX_STEP_SECONDS
from trainer.history.cleaning import CleaningCause, Tally

USAGE, PODS, NODES, CAPACITY, LIMIT_HITS, SETTINGS, EVENTS, MOVED = (
    "usage.parquet",
    "pods.parquet",
    "nodes.parquet",
    "capacity.parquet",
    "limit_hits.parquet",
    "history.json",
    "events.yaml",
    "moved.yaml",
)
_BATCH_ROWS = 1 << 20
_SECONDS_PER_UNIT = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EXPECTED = "see docs/understand/history-layout.md, or export the history again"


class Layout:
    """Names of the files in a history directory."""

    usage, pods, nodes, capacity, limit_hits = USAGE, PODS, NODES, CAPACITY, LIMIT_HITS
    settings, events, moved = SETTINGS, EVENTS, MOVED


CREATED = "kube_system_created"
"""Key of history.json: the cluster that the days are of, by unix seconds."""


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """history.json: calendar of the slots and the sampling step, None where it is to be inferred."""

    calendar: Calendar
    step_seconds: int | None


def read_settings(directory: Path, tally: Tally) -> HistorySettings:
    """Settings of a history; UTC without holidays where there is no history.json.

    A key that looks like a known one misspelt is refused; other keys belong to other tools and are only counted.
    """
    path = directory / SETTINGS
    if not path.exists():
        return HistorySettings(Calendar(), None)
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is not readable JSON ({error}): mend it or delete it to use UTC") from error
    if not isinstance(document, dict):
        raise InputError(f"{path} holds {type(document).__name__}: write an object such as {{'time_zone': 'UTC'}}")
    known = ("time_zone", "holiday_country", "step", "comment", CREATED)
    for key in document:
        if key not in known:
            if guess := difflib.get_close_matches(key, known, n=1, cutoff=0.8):
                raise InputError(f"{path} has the unknown key {key!r}, a typo of {guess[0]}?: correct or delete it")
            tally.add(SETTINGS, CleaningCause.UNKNOWN_KEY, 1)
    zone, country, step = document.get("time_zone"), document.get("holiday_country"), document.get("step")
    for key, value in (("time_zone", zone), ("holiday_country", country)):
        if value is not None and not isinstance(value, str):
            raise InputError(f"{path}: {key} is {value!r}, it must be text")
    step_seconds = None if step is None else _step_seconds(step)
    if step_seconds is not None and not 1 <= step_seconds <= MAX_STEP_SECONDS:
        raise InputError(f"{path}: step is {step!r}, it must lie between 1s and 1h: write for instance '5m'")
    return HistorySettings(Calendar(zone or "UTC", country), step_seconds)


def _step_seconds(step: Any) -> int:
    """Seconds of "5m", "30s", "1h", "30min" or a number of seconds; 0 for anything else."""
    if isinstance(step, int | float) and not isinstance(step, bool):
        return int(step) if 0 < step < 1e6 else 0
    match = re.fullmatch(r"(\d{1,5}) ?(s|m|min|h)", step) if isinstance(step, str) else None
    return int(match[1]) * {"s": 1, "m": 60, "min": 60, "h": 3600}[match[2]] if match else 0


@dataclass(frozen=True, slots=True)
class LayoutFile:
    """One opened file of the layout, or a directory of parts of it."""

    name: str
    path: Path
    files: tuple[Path, ...]
    parts: tuple[pq.ParquetFile, ...]
    columns: frozenset[str]

    @classmethod
    def open(cls, directory: Path, name: str, *, required: Sequence[str], text: Sequence[str] = ()) -> LayoutFile:
        """Open and check a file; `text` columns are read as dictionaries, which is fast and small for names."""
        path = directory / name
        if not directory.is_dir():
            raise InputError(f"history directory {directory} does not exist: give the directory that holds {name}")
        if not path.exists():
            found = ", ".join(sorted(entry.name for entry in directory.iterdir())[:8]) or "nothing"
            raise InputError(f"{name} is missing in {directory} (found {found}): {_EXPECTED}")
        files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
        if not files:
            raise InputError(f"{path} is a directory without Parquet files: {_EXPECTED}")
        parts = []
        for file in files:
            with _readable(file):
                part = pq.ParquetFile(file)
                present = [column for column in text if column in part.schema_arrow.names]
                parts.append(pq.ParquetFile(file, read_dictionary=present, metadata=part.metadata))
            _check_columns(file, part.schema_arrow, required, text)
        columns = frozenset.intersection(*(frozenset(part.schema_arrow.names) for part in parts))
        return cls(name, path, tuple(files), tuple(parts), columns)

    @property
    def n_rows(self) -> int:
        return sum(part.metadata.num_rows for part in self.parts)

    def groups(self) -> list[tuple[int, int]]:
        """All row groups as (part, group)."""
        return [(p, g) for p, part in enumerate(self.parts) for g in range(part.metadata.num_row_groups)]

    def group_rows(self, part: int, group: int) -> int:
        """Rows in one row group."""
        return int(self.parts[part].metadata.row_group(group).num_rows)

    def batches(self, part: int, group: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of one row group, in bounded pieces; columns that the file does not have are left out."""
        wanted = [column for column in columns if column in self.columns]
        with _readable(self.path):
            for batch in self.parts[part].iter_batches(_BATCH_ROWS, row_groups=[group], columns=wanted):
                # Parquet has no checksums by default: damaged pages decode to names that are no text and to indices
                # that point outside the dictionary.
                batch.validate(full=True)
                yield batch

    def read(self, columns: Sequence[str]) -> pa.Table:
        """The whole file, for the small ones."""
        wanted = [column for column in columns if column in self.columns]
        with _readable(self.path):
            table = pa.concat_tables([part.read(columns=wanted) for part in self.parts], promote_options="permissive")
            table.validate(full=True)
            return table

    def read_parts(self, columns: Sequence[str]) -> Iterator[tuple[Path, pa.Table]]:
        """The same file by file, each with those of the columns that it has."""
        for path, part in zip(self.files, self.parts, strict=True):
            with _readable(path):
                table = part.read(columns=[column for column in columns if column in part.schema_arrow.names])
                table.validate(full=True)
                yield path, table


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Translate everything Parquet can complain about into one sentence."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise InputError(
            f"{path} is not a complete Parquet file ({reason}): it may be truncated; export the history again"
        ) from error


def _check_columns(path: Path, schema: pa.Schema, required: Sequence[str], text: Sequence[str]) -> None:
    for column in required:
        if column not in schema.names:
            guess = difflib.get_close_matches(column, schema.names, n=1)
            hint = f" (is {guess[0]!r} meant?)" if guess else ""
            raise InputError(f"{path} has no column {column!r}{hint}: {_EXPECTED}")
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if field.name == "timestamp" and not pa.types.is_timestamp(kind):
            raise InputError(f"{path}: column timestamp is {kind}, it must be a Parquet timestamp (UTC): {_EXPECTED}")
        if field.name in text and not _is_text(kind):
            raise InputError(f"{path}: column {field.name} is {kind}, it must be text: {_EXPECTED}")
        if field.name.endswith(("_cores", "_bytes", "_bytes_per_second", "_share")) and not _is_number(kind):
            raise InputError(f"{path}: column {field.name} is {kind}, it must be a number: {_EXPECTED}")


def _is_text(kind: pa.DataType) -> bool:
    # A column that is null throughout has the type null, whatever it was meant to be.
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind))


def _is_number(kind: pa.DataType) -> bool:
    tests = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal, pa.types.is_null)
    return any(test(kind) for test in tests)


def seconds(column: pa.Array) -> tuple[Ints, Any]:
    """Whole seconds since 1970 (UTC; a timestamp without zone is UTC) and which rows have none (or None if all do)."""
    per_second = _SECONDS_PER_UNIT[column.type.unit]
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    ticks = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return ticks // per_second, missing


def numbers(column: pa.Array) -> Floats:
    """A numeric column with NaN for null."""
    values: Floats = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    return values


def positive(table: pa.Table, columns: Sequence[str], name: str, tally: Tally, *, zero_allowed: bool = False) -> Floats:
    """Columns side by side, (n_rows, n_columns); what is missing or cannot be true is NaN."""
    values = np.full((table.num_rows, len(columns)), np.nan)
    for index, column in enumerate(columns):
        if column in table.column_names:
            data = table[column].combine_chunks()
            values[:, index] = numbers(data)
            with np.errstate(invalid="ignore"):
                good = np.isfinite(values[:, index]) & (values[:, index] >= 0 if zero_allowed else values[:, index] > 0)
            tally.add(name, CleaningCause.BAD_CAPACITY, int(np.count_nonzero(~good)) - data.null_count)
            values[~good, index] = np.nan
    return values
