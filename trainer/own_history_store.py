"""Where the growing history lies, in the layout of docs/understand/history-layout.md, and how one day read twice
becomes one.
"""

from __future__ import annotations

import io
import json
import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from base.arrays import Floats, Ints
from base.errors import InputError, StoreError
from base.object_store import LocalStore, open_store
from base.progress import Progress, silent
from forecast.calendar import Calendar
from trainer.history.history_layout import CREATED, Layout
from trainer.history.node_and_pod_tables import DAY
from trainer.prometheus.day_tables import DayTables

# One day read twice becomes one day: what either reading knows is kept. Pure.
#
# A day is read again while samples may still arrive late, and by then the server may have forgotten its first hours: so
# neither reading may simply replace the other. Where they differ in what a node can do, its capacity changed within the
# day: the largest of each resource is kept in front of what was read last.

_POD_KEYS, _NODE_KEYS = ("namespace", "pod"), ("node",)

logger = logging.getLogger(__name__)
LEDGER = "days.json"

SETTLE = timedelta(hours=2)
"""How late samples may arrive: remote write catches up, a Thanos sidecar uploads two-hour blocks."""

_NEEDED = {"usage": Layout.usage, "nodes": Layout.nodes, "pods": Layout.pods, "capacity": Layout.capacity}
_TABLES = {**_NEEDED, "limit_hits": Layout.limit_hits}
"""Days that older releases read have no limit hits: they are not read again for their sake."""

_ROW_GROUP = 500_000


def merge_days(old: DayTables, new: DayTables) -> DayTables:
    """Both readings of one day. Of samples taken at the same time the fuller reading counts, the new one if alike."""
    return replace(
        new,
        usage=_merge_samples(old.usage, new.usage),
        nodes=_merge_samples(old.nodes, new.nodes),
        pods=_merge_facts(old.pods, new.pods, _POD_KEYS),
        capacity=_merge_capacity(old.capacity, new),
        limit_hits=_merge_samples(old.limit_hits, new.limit_hits),
    )


def _merge_capacity(old: pa.Table, new: DayTables) -> pa.Table:
    """What was read last of each node, after the largest of both readings where that is more; with the day."""
    here = new.capacity.drop_columns([DAY] if DAY in new.capacity.column_names else [])
    before = old.select([name for name in here.column_names if name in old.column_names]).to_pandas()
    before = before.astype({"node": "string"})
    last = _merge_facts(old.filter(pa.array(~before["node"].duplicated(keep="last"))), here, _NODE_KEYS)
    latest = last.to_pandas().astype({"node": "string"}).set_index("node")
    largest = pd.concat([before.set_index("node"), latest]).groupby("node").max().loc[latest.index]
    rows = pd.concat([largest[(largest > latest).any(axis=1)], latest]).sort_index(kind="stable").reset_index()
    table = pa.Table.from_pandas(rows, schema=last.schema, preserve_index=False)
    return table.append_column(DAY, pa.array([new.day] * len(rows), pa.date32()))


def _merge_samples(old: pa.Table, new: pa.Table) -> pa.Table:
    """Time by time the rows of the reading that has more values there; sorted by timestamp."""
    if not old.num_rows or not new.num_rows:
        return new if new.num_rows else old
    times = np.union1d(_milliseconds(old), _milliseconds(new))
    keep_new = _fullness(new, times) >= _fullness(old, times)
    rows_old = ~keep_new[np.searchsorted(times, _milliseconds(old))]
    rows_new = keep_new[np.searchsorted(times, _milliseconds(new))]
    merged = pa.concat_tables(
        [old.filter(pa.array(rows_old)), new.filter(pa.array(rows_new))], promote_options="permissive"
    ).unify_dictionaries()
    order = np.argsort(_milliseconds(merged), kind="stable")
    return merged.take(pa.array(order))


def _merge_facts(old: pa.Table, new: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """One row per key; the new reading's values where it has any, else the old one's."""
    frames = [table.to_pandas().astype(dict.fromkeys(keys, "string")) for table in (old, new)]
    indexed = [frame.set_index(list(keys)) for frame in frames]
    merged = indexed[1].combine_first(indexed[0]).reset_index()
    return pa.Table.from_pandas(merged[[*new.column_names]], schema=_plain(new.schema), preserve_index=False)


def _milliseconds(table: pa.Table) -> Ints:
    times: Ints = table["timestamp"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64()).to_numpy()
    return times


def _fullness(table: pa.Table, times: Ints) -> Floats:
    """How many rows and measured values a table has at each of the times: (n_times,)."""
    place = np.searchsorted(times, _milliseconds(table))
    fullness = np.bincount(place, minlength=len(times)).astype(np.float64)
    for field in table.schema:
        if pa.types.is_floating(field.type):
            measured = pc.is_valid(table[field.name]).to_numpy()
            fullness += np.bincount(place, weights=measured, minlength=len(times))
    return fullness


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema with text instead of dictionaries."""
    return pa.schema([pa.field(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in schema])


@dataclass(frozen=True, slots=True)
class ReadDay:
    """What the ledger says of one UTC day.

    read_until     : the day was read up to this instant
    recorded_share : share of the samples' queries that recording rules answered
    """

    read_until: datetime
    recorded_share: float

    def settled(self, day: date) -> bool:
        """Whether the day was read so late that it need not be read again."""
        return self.read_until >= _end(day) + SETTLE


class OwnHistory:
    """The history at a path or fsspec URL. One writer at a time: the lease of the nightly run sees to that."""

    def __init__(self, url: str) -> None:
        self.url = str(url)
        self._store = open_store(self.url)

    def read_days(self) -> dict[date, ReadDay]:
        """The days read so far, oldest first. A damaged ledger only means that days are read again."""
        try:
            document = json.loads(self._store.get(LEDGER))
            days = {
                date.fromisoformat(day): ReadDay(_instant(e["read_until"]), float(e["recorded_share"]))
                for day, e in document["days"].items()
            }
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            logger.warning("days.json is not readable, days are read again", extra={"error": repr(error)})
            return {}
        # A day of which a file was deleted or set aside is read again.
        stored = [set(_dates(self._store.files(directory))) for directory in _NEEDED.values()]
        return {day: entry for day, entry in sorted(days.items()) if all(day in table for table in stored)}

    def to_read(self, available: Iterable[date]) -> list[date]:
        """Which of the days a server has are to be read: those that are not settled here, oldest first."""
        read = self.read_days()
        return [day for day in sorted(set(available)) if day not in read or not read[day].settled(day)]

    def check_growable(self) -> None:
        """Raises InputError if the directory holds a history of single files, which is another tool's and finished."""
        for name in _TABLES.values():
            if self._store.exists(name):
                raise InputError(
                    f"{self.url} holds a finished history ({name} is a file), not one that grows: give --history "
                    "another directory, or leave --prometheus out to train on it as it is"
                )

    def remove_leftovers(self, now: datetime) -> None:
        """Delete what writers that were killed have left, once it is a day old."""
        self._store.remove_leftovers((now - timedelta(days=1)).timestamp())

    def set_damaged_aside(self) -> list[str]:
        """Rename files of a local directory that are no Parquet files to *.damaged; returns their names.

        Their days are read again as far as the server still has them. Only what the end of a file shows is seen.
        """
        damaged = []
        if isinstance(self._store, LocalStore):
            for path in sorted(p for directory in _TABLES.values() for p in (self._store.root / directory).glob("*")):
                if path.suffix != ".parquet":
                    continue
                try:
                    pq.read_metadata(path)
                except (pa.ArrowException, OSError) as error:
                    path.rename(path.with_name(f"{path.name}.damaged"))
                    damaged.append(f"{path.parent.name}/{path.name}")
                    logger.warning("set aside a damaged file", extra={"file": str(path), "error": str(error)[:160]})
        return damaged

    def begin(self, calendar: Calendar, step_seconds: int, kube_system_created: int | None) -> None:
        """Write history.json where there is none, so that others can open the directory as it is.

        kube_system_created : of the cluster that is read, unix seconds; None = not known
        Raises InputError if the days here are of a cluster with another one.
        """
        try:
            document = json.loads(self._store.get(Layout.settings))
        except FileNotFoundError:
            document = {
                "time_zone": calendar.time_zone,
                "holiday_country": calendar.holiday_country,
                "step": step_seconds,
                "comment": "kept by forecast-scheduler train; see docs/understand/history-layout.md",
            }
            if kube_system_created is not None:
                document[CREATED] = kube_system_created
            self._store.put(Layout.settings, (json.dumps(document, indent=1) + "\n").encode())
        except ValueError:
            return  # who opens the history says what is wrong with it
        before = document.get(CREATED) if isinstance(document, dict) else None
        if kube_system_created is not None and before not in (None, kube_system_created):
            raise InputError(
                f"{self.url} has the days of another cluster, whose kube-system was created at {before}, and that of "
                f"this one at {kube_system_created} (unix time): run train in another directory, or with --prometheus "
                f"and its own --history and --models; if it is this cluster made anew, delete {CREATED} from "
                f"{Layout.settings}"
            )

    def append(self, tables: DayTables, *, read_until: datetime) -> None:
        """Add what was read of a day to what is known of it; the day counts as read once days.json says so."""
        merged = merge_days(self._stored(tables), tables)
        for field, directory in _TABLES.items():
            self._store.put(f"{directory}/{tables.day}.parquet", _parquet(getattr(merged, field)))
        read = self.read_days()
        read[tables.day] = ReadDay(min(read_until, _end(tables.day) + SETTLE), tables.recorded_share)
        self._write_ledger(read)

    def forget_before(self, day: date) -> list[date]:
        """Delete the days before `day`; returns them."""
        read = self.read_days()
        old = sorted({d for directory in _TABLES.values() for d in _dates(self._store.files(directory)) if d < day})
        if old:
            # The ledger first: a day that is half deleted must not look complete.
            self._write_ledger({d: entry for d, entry in read.items() if d >= day})
            for stale in old:
                for directory in _TABLES.values():
                    self._store.delete(f"{directory}/{stale}.parquet")
        return old

    @contextmanager
    def local(self, progress: Progress = silent) -> Iterator[Path]:
        """The history as a local directory for `HistoryFiles`; for a remote store a copy that goes away afterwards."""
        if isinstance(self._store, LocalStore):
            yield self._store.root
            return
        with tempfile.TemporaryDirectory(prefix="forecast-scheduler-history-") as directory:
            names = [
                *(f"{table}/{name}" for table in _TABLES.values() for name in self._store.files(table)),
                Layout.settings,
                LEDGER,
                *(name for name in self._store.files("") if name in (Layout.events, Layout.moved)),
            ]
            for done, name in enumerate(names, start=1):
                target = Path(directory) / name
                target.parent.mkdir(exist_ok=True)
                try:
                    target.write_bytes(self._store.get(name))
                except FileNotFoundError as error:
                    raise StoreError(f"{self.url}: {name} has gone while it was copied; run again") from error
                progress("copy history", done, len(names))
            yield Path(directory)

    def _stored(self, new: DayTables) -> DayTables:
        """What is stored of the day of `new`; a table that is not there or not readable is empty, the others count."""
        tables = {}
        for field, directory in _TABLES.items():
            name = f"{directory}/{new.day}.parquet"
            try:
                tables[field] = pq.read_table(io.BytesIO(self._store.get(name)))
            except FileNotFoundError:
                tables[field] = getattr(new, field).slice(0, 0)
            except pa.ArrowException as error:
                logger.warning("a damaged file is replaced", extra={"file": name, "error": str(error)})
                tables[field] = getattr(new, field).slice(0, 0)
        return replace(new, **tables)

    def _write_ledger(self, read: Mapping[date, ReadDay]) -> None:
        days = {
            day.isoformat(): {"read_until": entry.read_until.isoformat(), "recorded_share": entry.recorded_share}
            for day, entry in sorted(read.items())
        }
        self._store.put(LEDGER, (json.dumps({"days": days}, indent=1) + "\n").encode())


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", row_group_size=_ROW_GROUP)
    return buffer.getvalue()


def _dates(names: Iterable[str]) -> Iterator[date]:
    """The days of file names; files that are not ours are passed over."""
    for name in names:
        try:
            yield date.fromisoformat(name.removesuffix(".parquet"))
        except ValueError:
            continue


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return instant


def last_read(directory: Path) -> datetime | None:
    """Up to when a local history of ours was read; None for any other history. The day of that instant is not over."""
    if not (directory / LEDGER).is_file():
        return None
    return max((entry.read_until for entry in OwnHistory(str(directory)).read_days().values()), default=None)


def _end(day: date) -> datetime:
    return datetime.combine(day + timedelta(days=1), time(), UTC)
