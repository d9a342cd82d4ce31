"""Forecasts as they were issued: each night's peaks are kept, to be held against what came.

    <store>/issued/<first_day>-<version>.parquet    service, resource, day, q50, q95

One file per published model, with the peaks of one pod on the seven days from its cut-off on, as
`PeakModel.service_peaks` gave them that night: what a refit would say today is not what the scorer acted upon. A
forecast counts as issued for a day if it was published before that local day was over. The time of publication is what
its version begins with (forecast/published_models.py), and the file's metadata name the time zone. Files are kept for
60 days. They are figures for people: a damaged one is left out with a warning and stops nothing.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from base.arrays import Floats, Ints
from base.errors import ForecastError
from base.object_store import ObjectStore
from forecast.calendar import Calendar
from forecast.model import PEAK_QUANTILES, PeakModel
from forecast.resources import RESOURCES
from forecast.service_key import ServiceKey

logger = logging.getLogger(__name__)

ISSUED_DAYS = 7
"""Days of each night's forecast that are kept: tomorrow's to next week's."""

KEPT_DAYS = 60

_DIRECTORY = "issued"
_TIME_ZONE = b"time_zone"
_WESTERNMOST = "Etc/GMT+12"
"""Days of a file that does not name its time zone are taken to end when they end everywhere."""

_PUBLISHED = re.compile(r"\d{8}T\d{12}Z")
_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})-(.+)\.parquet\Z")
_SCHEMA = pa.schema(
    [
        ("service", pa.dictionary(pa.int32(), pa.string())),
        ("resource", pa.dictionary(pa.int32(), pa.string())),
        ("day", pa.date32()),
        ("q50", pa.float32()),
        ("q95", pa.float32()),
    ]
)


@dataclass(frozen=True, slots=True)
class IssuedForecasts:
    """For each day the forecast that was issued for it.

    peaks     : (n_services, n_resources, n_days, n_quantiles) base units of one pod; NaN = nothing was issued
    lead_days : (n_days,) 1 = issued at the midnight the day began with, 2 = a day earlier, ...; 0 = nothing was issued
    versions  : (n_days,) the model it came from; "" = nothing was issued
    """

    days: tuple[date, ...]
    services: tuple[ServiceKey, ...]
    peaks: Floats
    lead_days: Ints
    versions: tuple[str, ...]

    @classmethod
    def none(cls, days: Sequence[date]) -> IssuedForecasts:
        """Where nothing was issued, or nothing can be read."""
        nothing = np.empty((0, len(RESOURCES), len(days), len(PEAK_QUANTILES)))
        return cls(tuple(days), (), nothing, np.zeros(len(days), dtype=np.int64), ("",) * len(days))

    def aligned(self, services: Sequence[ServiceKey]) -> IssuedForecasts:
        """The same for other services in their order; those of which nothing was issued are NaN."""
        row = {service: index for index, service in enumerate(self.services)}
        found = np.array([row.get(service, -1) for service in services], dtype=np.int64)
        peaks = np.full((len(found), *self.peaks.shape[1:]), np.nan)
        peaks[found >= 0] = self.peaks[found[found >= 0]]
        return replace(self, services=tuple(services), peaks=peaks)


def store_issued(store: ObjectStore, model: PeakModel, version: str) -> str:
    """Keep what a published model forecasts for the days from its cut-off on; returns the file's name.

    Storing the same version again replaces the file by an equal one. Files of more than KEPT_DAYS ago are deleted.
    Raises StoreError if the store cannot be written.
    """
    days = model.calendar.horizon(model.first_day, ISSUED_DAYS)
    peaks = np.stack([model.service_peaks(day) for day in days], axis=2)  # (n_services, n_resources, n_days, 2)
    service, resource, day = np.nonzero(np.isfinite(peaks).all(axis=3))
    q50, q95 = peaks[service, resource, day].astype(np.float32).T
    table = pa.table(
        [
            pa.DictionaryArray.from_arrays(service.astype(np.int32), [str(key) for key in model.services]),
            pa.DictionaryArray.from_arrays(resource.astype(np.int32), [r.name for r in RESOURCES]),
            pa.array(np.array(days, dtype="datetime64[D]")[day]),
            q50,
            q95,
        ],
        schema=_SCHEMA.with_metadata({_TIME_ZONE: model.calendar.time_zone.encode()}),
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    name = f"{model.first_day.isoformat()}-{version}.parquet"
    store.put(f"{_DIRECTORY}/{name}", buffer.getvalue())
    for first_day, _, old in _files(store):
        if first_day < model.first_day - timedelta(days=KEPT_DAYS):
            store.delete(f"{_DIRECTORY}/{old}")
    return name


def load_issued(
    store: ObjectStore, days: Sequence[date], *, min_lead_days: int = 1, after_the_fact: bool = False
) -> IssuedForecasts:
    """For each day the forecast issued latest, from a cut-off at least `min_lead_days` midnights before the day's end.

    min_lead_days  : 1 = up to the midnight the day began with (day-ahead), 7 = a week ahead (at most ISSUED_DAYS)
    after_the_fact : also forecasts published once the local day was over, for runs on recorded days; else these count
                     as not issued, and so do those of versions that do not begin with a time
    Of several versions with the same cut-off the one published last counts. Raises StoreError if the store cannot be
    reached.
    """
    files = _files(store)
    tables: dict[str, _Table | None] = {}
    chosen: list[tuple[str, int, _Table | None]] = []
    for day in days:
        entry: tuple[str, int, _Table | None] = ("", 0, None)
        for first_day, version, name in reversed(files):
            lead = (day - first_day).days + 1
            if not min_lead_days <= lead <= ISSUED_DAYS:
                continue
            if name not in tables:
                tables[name] = _read(store, name)
            table = tables[name]
            if table is not None and (after_the_fact or _foresaw(version, table, day)):
                entry = (version, lead, table)
                break
        chosen.append(entry)
    services = tuple(sorted({service for _, _, table in chosen if table is not None for service in table.services}))
    row = {service: index for index, service in enumerate(services)}
    peaks = np.full((len(services), len(RESOURCES), len(days), len(PEAK_QUANTILES)), np.nan)
    for position, (day, (_, _, table)) in enumerate(zip(days, chosen, strict=True)):
        if table is None:
            continue
        index = np.array([row[service] for service in table.services], dtype=np.int64)
        now = table.day == np.datetime64(day, "D")
        peaks[index[table.service[now]], table.resource[now], position] = table.quantiles[now]
    return IssuedForecasts(
        days=tuple(days),
        services=services,
        peaks=peaks,
        lead_days=np.array([lead for _, lead, _ in chosen], dtype=np.int64),
        versions=tuple(version for version, _, _ in chosen),
    )


def published_at(version: str) -> datetime | None:
    """When a version was published, as its name says; None if it says nothing."""
    match = _PUBLISHED.match(version)
    if not match:
        return None
    try:
        return datetime.strptime(match[0], "%Y%m%dT%H%M%S%fZ").replace(tzinfo=UTC)
    except ValueError:
        return None  # looks like a time and is none


@dataclass(frozen=True, slots=True)
class _Table:
    """One file. service, resource: (n_rows,) indices; day: (n_rows,) datetime64[D]; quantiles: (n_rows, 2).

    calendar : the time zone of its days; holidays are not known
    """

    calendar: Calendar
    services: tuple[ServiceKey, ...]
    service: Ints
    resource: Ints
    day: np.ndarray[tuple[int], np.dtype[np.datetime64]]
    quantiles: Floats


def _foresaw(version: str, table: _Table, day: date) -> bool:
    """Whether a version was published before a local day was over."""
    published = published_at(version)
    return published is not None and published < table.calendar.midnight(day + timedelta(days=1))


def _files(store: ObjectStore) -> list[tuple[date, str, str]]:
    """Cut-off, version and name of every file, in the order of cut-off and version."""
    found = []
    for name in store.files(_DIRECTORY):
        if match := _NAME.match(name):
            try:
                found.append((date.fromisoformat(match[1]), match[2], name))
            except ValueError:
                continue  # looks like a date and is none: not a file of ours
    return sorted(found)


def _read(store: ObjectStore, name: str) -> _Table | None:
    """One file, or None with a warning if it is damaged."""
    try:
        raw = pq.read_table(io.BytesIO(store.get(f"{_DIRECTORY}/{name}")))
        calendar = Calendar((raw.schema.metadata or {}).get(_TIME_ZONE, _WESTERNMOST.encode()).decode())
        table = raw.select(_SCHEMA.names).replace_schema_metadata().cast(_SCHEMA)
        table = table.unify_dictionaries().combine_chunks()
        service, resource = table.column("service"), table.column("resource")
        if any(column.null_count for column in table.columns):
            raise ValueError("it holds nulls")
        names = _dictionary(service)
        known = {r.name: index for index, r in enumerate(RESOURCES)}
        of_resource = np.array([known[name] for name in _dictionary(resource)], dtype=np.int64)
        return _Table(
            calendar=calendar,
            services=tuple(ServiceKey.parse(name) for name in names),
            service=_indices(service),
            resource=of_resource[_indices(resource)],
            day=table.column("day").to_numpy().astype("datetime64[D]"),
            quantiles=np.stack([table.column(q).to_numpy() for q in ("q50", "q95")], axis=1).astype(np.float64),
        )
    except FileNotFoundError:
        return None  # pruned since it was listed
    except (pa.ArrowException, ValueError, KeyError, OSError, ForecastError) as error:
        logger.warning("issued forecasts are left out", extra={"file": name, "error": " ".join(str(error).split())})
        return None


def _dictionary(column: pa.ChunkedArray) -> list[str]:
    names: list[str] = column.chunk(0).dictionary.to_pylist() if column.num_chunks else []
    return names


def _indices(column: pa.ChunkedArray) -> Ints:
    if not column.num_chunks:
        return np.zeros(0, dtype=np.int64)
    return np.asarray(column.chunk(0).indices.to_numpy(), dtype=np.int64)
