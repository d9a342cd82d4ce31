"""The tables of pods and nodes: requests and capacities, and since when, joined to what the samples mention."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from base.arrays import Bools, Floats, Ints
from base.errors import InputError
from forecast.aggregation import NodeTable, PodTable
from forecast.assumed_capacity import ASSUMED_RESOURCES
from forecast.calendar import Calendar
from forecast.one_off_owners import group_of_each
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.service_key import ServiceKey
from forecast.usage_limits import bounded_by_nodes
from trainer.history.cleaning import CleaningCause, Tally
from trainer.history.history_layout import Layout, LayoutFile, positive
from trainer.history.series_file import SeriesInventory

# What nodes can do, and since when: capacity.parquet, with one row per node or one for each day of a change.
#
# A row is what its node had last on its day (UTC). When within the day it changed is not known, so the day is judged by
# the largest of what held before and of what its rows say: no honest value is dropped. A local day is judged by the
# largest of the UTC days that it touches.
#
# Null in CPU, memory or allocatable means unknown: what is known of other days holds. Disk, network and log
# come from settings, which are corrected and taken back: there the last row holds for all days, a larger one of an
# earlier day for its days.

DAY: Final = "day"
COLUMNS: Final = (*(resource.column for resource in RESOURCES), "allocatable_cpu_cores", "allocatable_memory_bytes")
_OF_SETTINGS: Final = list(ASSUMED_RESOURCES)

_UNDATED: Final = 0
"""Day of a row without one: it holds from ever on."""

_STILL_THERE_SECONDS = 900
"""An owner that was sampled so shortly before the end of the history may run on."""

_REQUESTS = ("request_cpu_cores", "request_memory_bytes")


@dataclass(frozen=True, slots=True)
class RecordedCapacity:
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


def read_capacity(file: LayoutFile, tally: Tally) -> Mapping[str, RecordedCapacity]:
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
    nodes: Sequence[RecordedCapacity | None], calendar: Calendar, days: Sequence[date]
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


def _of_node(day: Ints, values: Floats) -> RecordedCapacity:
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
    return RecordedCapacity(day, values)


def _carried(values: Floats) -> Floats:
    """NaN takes the last known value before it in its column: (n_rows, n_columns)."""
    row = np.where(np.isfinite(values), np.arange(len(values))[:, None], 0)
    return np.take_along_axis(values, np.maximum.accumulate(row, axis=0), axis=0)


def read_requests(file: LayoutFile, tally: Tally) -> Mapping[tuple[str, str], Floats]:
    """Requests (CPU cores, memory bytes; NaN = unknown) by (namespace, pod); the last row of a pod counts."""
    table = file.read(["namespace", "pod", *_REQUESTS])
    values = positive(table, _REQUESTS, file.name, tally, zero_allowed=True)  # (n_rows, 2)
    names = zip(table["namespace"].to_pylist(), table["pod"].to_pylist(), strict=True)
    return {name: row for name, row in zip(names, values, strict=True) if None not in name}


def node_table(
    capacity: Mapping[str, RecordedCapacity],
    seen: Collection[str],
    calendar: Calendar,
    days: Sequence[date],
    tally: Tally,
) -> NodeTable:
    """All nodes that have a capacity or a sample, sorted by name; days: local days that are judged."""
    tally.set(Layout.capacity, CleaningCause.UNKNOWN_NODE, len(set(seen) - set(capacity)))
    nodes = tuple(sorted({*capacity, *seen}))
    known = [capacity.get(node) for node in nodes]
    unknown = np.full(len(COLUMNS), np.nan)
    values = np.array([unknown if one is None else one.last for one in known]).reshape(len(nodes), len(unknown))
    last, daily = values[:, : len(RESOURCES)], None
    if changed := daily_capacities(known, calendar, days):
        daily = np.repeat(last[:, :, None], len(days), axis=2)
        for row, of_node in changed.items():
            daily[row] = of_node
        # Changes long before the first day concern nothing here.
        daily = None if np.array_equal(daily, np.broadcast_to(last[:, :, None], daily.shape), equal_nan=True) else daily
    return NodeTable(nodes, capacity=last, allocatable=values[:, len(RESOURCES) :], daily_capacity=daily)


def pod_table(
    stock: SeriesInventory, requests: Mapping[tuple[str, str], Floats], nodes: NodeTable, tally: Tally
) -> tuple[PodTable, Ints]:
    """Return all pods with samples, sorted by service and name, and the row of each series of the file (-1 = left out).

    Requests are bounded by the largest node: a pod that requests more can use no more.

    Pods of DaemonSets and static pods are left out: they come with their node, and what they use is its base load.
    Owners that ran once under generated names are one service together (forecast.one_off_owners).
    """
    parsed = {pair: _service(*pair) for pair in {key[:2] for key in stock.keys}}
    placed = [i for i, key in enumerate(stock.keys) if not parsed[key[:2]].belongs_to_node]
    tally.set(Layout.usage, CleaningCause.WITH_NODE, len(stock.keys) - len(placed))
    if not placed:
        raise InputError(
            f"{Layout.usage} holds no pod that a scheduler places, only DaemonSets and static pods: "
            "check the export's column service"
        )
    owners = {pair: service for pair, service in parsed.items() if not service.belongs_to_node}
    groups = _groups(stock, owners)
    tally.set(Layout.usage, CleaningCause.ONE_OFF, len(groups))
    parsed |= {pair: groups[service] for pair, service in owners.items() if service in groups}
    services = tuple(sorted({parsed[stock.keys[i][:2]] for i in placed}))
    index = {service: number for number, service in enumerate(services)}
    rows = sorted((index[parsed[stock.keys[i][:2]]], stock.keys[i][2], i) for i in placed)
    rank = np.full(len(stock.keys), -1, dtype=np.int64)
    rank[[i for _, _, i in rows]] = np.arange(len(rows))
    unknown = np.full(len(_REQUESTS), np.nan)
    names = [(stock.keys[i][0], pod) for _, pod, i in rows]
    tally.set(Layout.pods, CleaningCause.UNKNOWN_POD, sum(name not in requests for name in names))
    return (
        PodTable(
            pods=tuple(f"{namespace}/{pod}" for namespace, pod in names),
            services=services,
            service=np.array([service for service, _, _ in rows], dtype=np.int64),
            requests=bounded_by_nodes(
                np.array([requests.get(name, unknown) for name in names]).reshape(len(rows), len(_REQUESTS)),
                nodes.capacity[:, [CPU, MEMORY]],
            ),
        ),
        rank,
    )


def _groups(stock: SeriesInventory, owners: Mapping[tuple[str, ...], ServiceKey]) -> dict[ServiceKey, ServiceKey]:
    """The group of each owner that is counted as a part of one; owners: by namespace and service of the file."""
    services = sorted(set(owners.values()))
    index = {service: number for number, service in enumerate(services)}
    rows = [i for i, key in enumerate(stock.keys) if key[:2] in owners]
    owner = np.array([index[owners[stock.keys[i][:2]]] for i in rows], dtype=np.int64)
    first, last = np.full(len(services), np.iinfo(np.int64).max), np.full(len(services), -1)
    np.minimum.at(first, owner, stock.first[rows])
    np.maximum.at(last, owner, stock.last[rows])
    # One of the last samples: a restart of the agent may have cost some.
    still_there = last >= last.max() - _STILL_THERE_SECONDS
    return group_of_each(services, last - first, ~still_there)


def node_lookup(names: Sequence[str], nodes: NodeTable) -> Ints:
    """Row of each name in the node table, and -1 at the end: (len(names) + 1,)."""
    index = {name: number for number, name in enumerate(nodes.nodes)}
    return np.array([*(index[name] for name in names), -1], dtype=np.int64)


def _service(namespace: str, service: str) -> ServiceKey:
    try:
        return ServiceKey.from_columns(namespace, service)
    except InputError as error:
        raise InputError(
            f"{Layout.usage}: service {service!r} in namespace {namespace!r} is not Kind/name of the top owner: "
            "write for instance Deployment/cart"
        ) from error
