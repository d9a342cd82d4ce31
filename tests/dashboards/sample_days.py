"""Two namespaces of the bundled sample as a cluster of their own whose last days end now, moved over to the forecast.

Days of the sample keep their order and become the last ten days, today and tomorrow (UTC; weekdays mean nothing in it,
data/README.md). Until the adoption pods sit where fewest CPU is requested; from then on where a quiet day of the week
before says that the peak stays lowest. Nodes use what their own base and these pods use.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from forecast.arrays import Bools, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import Placements
from forecast.resources import CPU, MEMORY, RESOURCES
from testing.processes.scorer_process import ROOT

SLOT_SECONDS: Final = 1800
_SAMPLE: Final = ROOT / "data" / "sample"
_FIRST: Final = datetime(2026, 1, 11, 23, tzinfo=UTC)  # midnight where the sample is
_DAYS_THERE: Final = 32
_NAMESPACES: Final = ("accounts", "shop")
_PAST, _AFTER = 10, 2  # whole days before today; today and tomorrow
_ADOPTED_DAYS_AGO: Final = 3
_FILLED: Final = 0.5
"""Of the nodes' capacity: what all pods use at their worst half hour."""

_COLUMNS: Final = [resource.column for resource in RESOURCES]


@dataclass(frozen=True, slots=True)
class SampleDays:
    """first: midnight of the first day. Slots are half hours from there.

    pods, owners, requests : names, (namespace, Kind/name), (n_pods, 2) cores and bytes
    usage                  : (n_pods, n_slots, n_resources), NaN = not there
    at                     : (n_pods, n_slots) node; -1 = not there
    nodes, capacity        : names; (n_nodes, n_resources)
    node_usage             : (n_nodes, n_slots, n_resources)
    """

    first: datetime
    pods: tuple[str, ...]
    owners: tuple[tuple[str, str], ...]
    requests: Floats
    usage: Floats
    at: Ints
    nodes: tuple[str, ...]
    capacity: Floats
    node_usage: Floats

    @property
    def today(self) -> date:
        """Local day, which is UTC's."""
        return self.first.date() + timedelta(days=_PAST)

    @property
    def adopted(self) -> datetime:
        """When the forecast took over."""
        return self.first + timedelta(days=_PAST - _ADOPTED_DAYS_AGO)

    def slot(self, moment: datetime) -> int:
        """The half hour under way."""
        return int((moment - self.first).total_seconds() // SLOT_SECONDS)

    def there(self, moment: datetime) -> Ints:
        """Rows of the pods that run."""
        return np.flatnonzero(self.at[:, self.slot(moment)] >= 0)

    def placements(
        self, services: tuple[tuple[str, str], ...], nodes: tuple[str, ...], begin: int, end: int
    ) -> Placements:
        """Who sits where in the slots begin..end, as a model numbers services and nodes."""
        service_of = {name: row for row, name in enumerate(services)}
        node_of = np.array([nodes.index(name) for name in self.nodes])
        runs = [
            (pod, service_of[self.owners[pod]], int(node_of[self.at[pod, first]]), first - begin, last - begin)
            for pod, first, last in _runs(self.at[:, begin:end], begin)
            if self.owners[pod] in service_of
        ]
        columns = [np.array(column, dtype=np.int64) for column in zip(*runs, strict=True)]
        return Placements(*columns)

    def write_history(self, directory: Path, *, until: date) -> None:
        """A history directory of all days before `until`."""
        directory.mkdir(parents=True)
        n_slots = (until - self.first.date()).days * SLOTS_PER_DAY
        times = pd.date_range(self.first, periods=n_slots, freq=f"{SLOT_SECONDS}s")
        pod, slot = np.nonzero(self.at[:, :n_slots] >= 0)
        frame = pd.DataFrame(self.usage[pod, slot], columns=_COLUMNS)
        frame.insert(0, "timestamp", times[slot])
        for column, values in (
            ("namespace", [owner[0] for owner in self.owners]),
            ("service", [owner[1] for owner in self.owners]),
            ("pod", list(self.pods)),
        ):
            frame[column] = np.array(values, dtype=object)[pod]
        frame["node"] = np.array(self.nodes, dtype=object)[self.at[pod, slot]]
        frame.to_parquet(directory / "usage.parquet")
        of_nodes = pd.DataFrame(self.node_usage[:, :n_slots].reshape(-1, len(RESOURCES)), columns=_COLUMNS)
        of_nodes.insert(0, "timestamp", np.tile(times, len(self.nodes)))
        of_nodes["node"] = np.repeat(np.array(self.nodes, dtype=object), n_slots)
        of_nodes.to_parquet(directory / "nodes.parquet")
        pods = pd.DataFrame(self.owners, columns=["namespace", "service"])
        pods["pod"] = self.pods
        pods[["request_cpu_cores", "request_memory_bytes"]] = self.requests
        pods.to_parquet(directory / "pods.parquet")
        capacity = pd.DataFrame(self.capacity, columns=_COLUMNS)
        capacity["node"] = self.nodes
        capacity.to_parquet(directory / "capacity.parquet")
        (directory / "history.json").write_text(json.dumps({"time_zone": "UTC", "step": "30m"}))


def sample_days(today: date) -> SampleDays:
    """The cluster; the same for everybody on that day."""
    n_days = _PAST + _AFTER
    begin = _FIRST + timedelta(days=_DAYS_THERE - n_days)
    first = datetime.combine(today, time(), UTC) - timedelta(days=_PAST)
    recent = [("timestamp", ">=", pd.Timestamp(begin))]
    table = pq.read_table(_SAMPLE / "usage.parquet", filters=recent).to_pandas()
    of_nodes = pq.read_table(_SAMPLE / "nodes.parquet", filters=recent).to_pandas()
    for frame in (table, of_nodes):
        frame["slot"] = (frame["timestamp"] - pd.Timestamp(begin)).dt.total_seconds() // SLOT_SECONDS
    ours = table[table["namespace"].isin(_NAMESPACES)].copy()
    keys = ours[["namespace", "service", "pod"]].astype(str).drop_duplicates().sort_values(["namespace", "pod"])
    names, owners = tuple(keys["pod"]), tuple(zip(keys["namespace"], keys["service"], strict=True))
    row_of = {(namespace, pod): row for row, (namespace, pod) in enumerate(zip(keys["namespace"], names, strict=True))}
    rows = [row_of[key] for key in zip(ours["namespace"].astype(str), ours["pod"].astype(str), strict=True)]
    usage = np.full((len(names), n_days * SLOTS_PER_DAY, len(RESOURCES)), np.nan)
    usage[rows, ours["slot"].astype(int)] = ours[_COLUMNS]
    highest = np.nansum(usage, axis=0).max(axis=0)
    nodes, capacity, base = _nodes(table, of_nodes, highest=highest, n_slots=usage.shape[1])
    requests = _requests(keys)
    at = _placed(usage, owners, requests, capacity, adopted=(_PAST - _ADOPTED_DAYS_AGO) * SLOTS_PER_DAY)
    node_usage = base.copy()
    pod, slot = np.nonzero(at >= 0)
    np.add.at(node_usage, (at[pod, slot], slot), usage[pod, slot])
    return SampleDays(first, names, owners, requests, usage, at, nodes, capacity, node_usage)


def _requests(keys: pd.DataFrame) -> Floats:
    said = pd.read_parquet(_SAMPLE / "pods.parquet").astype({"namespace": str, "pod": str})
    merged = keys.merge(said, on=["namespace", "pod"], how="left", suffixes=("", "_said"))
    return merged[["request_cpu_cores", "request_memory_bytes"]].to_numpy(dtype=np.float64)


def _nodes(
    table: pd.DataFrame, of_nodes: pd.DataFrame, *, highest: Floats, n_slots: int
) -> tuple[tuple[str, ...], Floats, Floats]:
    """Names, capacities and bases, (n_nodes, n_slots, n_resources), of as many nodes of all sizes as are needed."""
    known = pd.read_parquet(_SAMPLE / "capacity.parquet").astype({"node": str})
    by_size = [list(known.index[known["node"].str.startswith(size)]) for size in ("large", "medium", "small")]
    turns: Iterator[int] = (rows.pop(0) for _ in range(len(known)) for rows in by_size if rows)
    chosen: list[int] = []
    while not chosen or not (known.loc[chosen, _COLUMNS].sum().to_numpy() * _FILLED > highest).all():
        chosen.append(next(turns))
    names = tuple(known.loc[chosen, "node"])
    total = np.zeros((len(names), n_slots, len(RESOURCES)))
    of_pods = np.zeros_like(total)
    for frame, into in ((of_nodes, total), (table, of_pods)):
        mine = frame[frame["node"].isin(names)]
        place = np.array([names.index(name) for name in mine["node"].astype(str)])
        np.add.at(into, (place, mine["slot"].to_numpy(dtype=np.int64)), mine[_COLUMNS].to_numpy(dtype=np.float64))
    return names, known.loc[chosen, _COLUMNS].to_numpy(dtype=np.float64), np.maximum(total - of_pods, 0)


def _placed(
    usage: Floats, owners: tuple[tuple[str, str], ...], requests: Floats, capacity: Floats, *, adopted: int
) -> Ints:
    """(n_pods, n_slots) node of each pod, which it gets when it comes, and anew at the adoption."""
    there = np.isfinite(usage[:, :, 0])  # (n_pods, n_slots)
    at = np.full(there.shape, -1, dtype=np.int64)
    numbers = {owner: number for number, owner in enumerate(dict.fromkeys(owners))}
    day = np.zeros((len(numbers), SLOTS_PER_DAY, len(RESOURCES)))  # what one pod of a service uses on a usual day
    service = np.array([numbers[owner] for owner in owners])
    for number in range(len(numbers)):
        known = usage[service == number, :adopted].reshape(-1, adopted // SLOTS_PER_DAY, SLOTS_PER_DAY, len(RESOURCES))
        day[number] = np.nan_to_num(np.nanmean(known, axis=(0, 1))) if np.isfinite(known).any() else 0
    share = requests / capacity[:, None, [CPU, MEMORY]]  # (n_nodes, n_pods, 2)
    for begin, end, by_forecast in ((0, adopted, False), (adopted, there.shape[1], True)):
        for pod, first, last in sorted(_runs(np.where(there[:, begin:end], 0, -1), begin), key=lambda run: run[1]):
            sitting = np.flatnonzero(at[:, first] >= 0)
            if by_forecast:
                load = np.zeros((len(capacity), SLOTS_PER_DAY, len(RESOURCES)))
                np.add.at(load, at[sitting, first], day[service[sitting]])
                cost = _growth(load / capacity[:, None], day[service[pod]] / capacity[:, None])
            else:
                requested = np.zeros((len(capacity), 2))
                np.add.at(requested, at[sitting, first], share[at[sitting, first], sitting])
                cost = requested[:, 0] + share[:, pod, 0]
            at[pod, first:last] = int(np.argmin(cost))
    return at


def _growth(load: Floats, more: Floats) -> Floats:
    """(n_nodes,) by how much the sum of fourth powers grows: (n_nodes, n_slots, n_resources) each."""
    growth: Floats = ((load + more) ** 4 - load**4).sum(axis=(1, 2))
    return growth


def _runs(at: Ints | Bools, offset: int) -> list[tuple[int, int, int]]:
    """(row, first slot, end) of every stretch of the same node, -1 left out; slots count from -offset."""
    edge = np.full((len(at), 1), -1)
    padded = np.concatenate([edge, at, edge], axis=1)
    pod, slot = np.nonzero(padded[:, 1:] != padded[:, :-1])
    runs = []
    for row, first, other, end in zip(pod, slot, pod[1:], slot[1:], strict=False):
        if row == other and at[row, first] >= 0:
            runs.append((int(row), int(first) + offset, int(end) + offset))
    return runs
