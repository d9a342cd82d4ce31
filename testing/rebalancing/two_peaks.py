"""A small cluster with services of the morning and of the evening, placed as if requests said what pods use.

All pods request the same, and all nodes have as many of them; three nodes have the evening's, three the morning's.
So the first are hot every evening and the others every morning, whatever the day, and moves mend both.

    world = TwoPeaks(...)
    usage = world.node_usage(day, placements)            what nodes use on a day, wherever the pods run
    Recorder(world, directory).add(day, placements)      the same as a history on disk, and as blocks of Prometheus
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from base.arrays import Floats
from forecast.calendar import SLOTS_PER_DAY, Calendar
from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU, RESOURCES
from testing.servers.openmetrics import MetricSeries, write_blocks
from trainer.prometheus.recording_rules import NODE_USAGE, POD_USAGE

N_NODES: Final = 10
CORES: Final = 16
NAMESPACE: Final = "shop"
REQUEST_CORES: Final = 1
_MEMORY: Final = 64 * 2.0**30
_EVENING: Final = (9, 9, 9, 5, 5, 5, 5, 1, 1, 1)
"""Pods of the evening on each node; those of the morning the other way round."""

_PEAK_HOURS: Final = {"evening": 20.0, "morning": 10.0}
_PEAK_CORES: Final = 2.0
_BASE_CORES: Final = 0.4
_PER_CORE: Final = np.array([1.0, 2.0**29, 1e4, 1e5, 1e2])
"""Of the five resources, what a pod uses for each core of its CPU; that of its memory is constant."""

_STEP: Final = 300
_SLOT: Final = 1800


@dataclass(frozen=True, slots=True)
class Seat:
    """A pod on its node. service: name of its Deployment."""

    service: str
    pod: str
    node: str


Placements = Sequence[Collection[Seat]]
"""The pods on their nodes in each half hour of a day."""


def node_name(number: int) -> str:
    """Return the name of a node."""
    return f"node-{number}"


def zone_in_the_small_hours(now: datetime) -> ZoneInfo:
    """Return a zone without summer time in which it is about half past two. now: aware."""
    utc = now.astimezone(UTC)
    ahead = int((3.0 - (utc.hour + utc.minute / 60)) // 1 + 11) % 24 - 11
    return ZoneInfo(f"Etc/GMT{-ahead:+d}")  # the sign of these names is the other way round


@dataclass(frozen=True, slots=True)
class TwoPeaks:
    """n_services: of the morning, and as many of the evening."""

    calendar: Calendar
    n_services: int = 10
    replicas: int = 5
    seed: int = 0

    @property
    def services(self) -> tuple[str, ...]:
        """Return the names of all Deployments."""
        return tuple(f"{when}-{number}" for when in _PEAK_HOURS for number in range(self.n_services))

    def nodes_at_first(self) -> dict[str, list[str]]:
        """Return the nodes of the pods of each service, as they were placed at first."""
        found = {}
        for when, quota in (("evening", _EVENING), ("morning", _EVENING[::-1])):
            places = [node for turn in range(max(quota)) for node in range(N_NODES) if quota[node] > turn]
            for number in range(self.n_services):
                taken = places[number * self.replicas : (number + 1) * self.replicas]
                found[f"{when}-{number}"] = [node_name(node) for node in taken]
        return found

    def pod_cores(self, service: str, day: date) -> Floats:
        """Return what one pod of a service uses on a day: (48,) cores."""
        kind, _, number = service.partition("-")
        noise = np.random.default_rng([self.seed, day.toordinal(), int(number), len(kind) + (kind == "evening")])
        away = (np.arange(SLOTS_PER_DAY) / 2 - _PEAK_HOURS[kind] + 12) % 24 - 12
        shape = 0.1 + 0.9 * np.exp(-(away**2) / 8)
        return np.asarray(_PEAK_CORES * shape * np.exp(noise.normal(0, 0.06)))

    def pod_usage(self, service: str, day: date) -> Floats:
        """Return what one pod uses of all resources: (n_resources, 48)."""
        usage = _PER_CORE[:, None] * self.pod_cores(service, day)
        usage[1] = _PER_CORE[1]
        return np.asarray(usage)

    def node_usage(self, day: date, placements: Placements) -> Floats:
        """Return what the nodes use on a day: (n_nodes, n_resources, 48)."""
        row_of = {node_name(number): number for number in range(N_NODES)}
        usage = np.zeros((N_NODES, len(RESOURCES), SLOTS_PER_DAY)) + (_BASE_CORES * _PER_CORE)[:, None]
        of = {service: self.pod_usage(service, day) for service in self.services}
        for slot, seats in enumerate(placements):
            for seat in seats:
                usage[row_of[seat.node], :, slot] += of[seat.service][:, slot]
        return usage

    def hot_half_hours(self, day: date, placements: Placements) -> int:
        """Return how many half hours of nodes are hot on a day."""
        return int((self.node_usage(day, placements)[:, CPU] / CORES > HOT_SHARE).sum())


class Recorder:
    """Writes days as they were lived, one after the other.

    history : directory as docs/understand/history-layout.md says
    blocks  : of a Prometheus; what recording rules would have made of its metrics
    """

    def __init__(self, world: TwoPeaks, directory: Path) -> None:
        self._world = world
        self.history, self.blocks = directory / "history", directory / "blocks"
        self._pods: dict[str, str] = {}
        for name in ("usage", "nodes"):
            (self.history / f"{name}.parquet").mkdir(parents=True)
        nodes = [node_name(number) for number in range(N_NODES)]
        columns = [one.column for one in RESOURCES]
        amounts = dict(zip(columns, (float(CORES), _MEMORY, None, None, None), strict=True))
        allocatable = {"allocatable_cpu_cores": float(CORES), "allocatable_memory_bytes": _MEMORY}
        frame = pd.DataFrame([{"node": name, **amounts, **allocatable} for name in nodes])
        frame.astype(dict.fromkeys(columns, float)).to_parquet(self.history / "capacity.parquet", index=False)
        about = {"time_zone": str(world.calendar.zone), "step": "30m"}
        (self.history / "history.json").write_text(json.dumps(about))

    def add(self, day: date, placements: Placements) -> None:
        """Write one local day to the history."""
        begin = pd.Timestamp(self._world.calendar.midnight(day).astimezone(UTC))
        columns = [one.column for one in RESOURCES]
        of = {service: self._world.pod_usage(service, day) for service in self._world.services}
        seats = [(slot, seat) for slot, there in enumerate(placements) for seat in there]
        self._pods |= {seat.pod: seat.service for _, seat in seats}
        usage = pd.DataFrame([of[seat.service][:, slot] for slot, seat in seats], columns=columns)
        usage["timestamp"] = [begin + timedelta(seconds=_SLOT * slot) for slot, _ in seats]
        usage["namespace"], usage["service"] = NAMESPACE, [f"Deployment/{seat.service}" for _, seat in seats]
        usage["pod"], usage["node"] = [seat.pod for _, seat in seats], [seat.node for _, seat in seats]
        usage.to_parquet(self.history / "usage.parquet" / f"{day}.parquet", index=False)
        on_nodes = self._world.node_usage(day, placements).transpose(2, 0, 1).reshape(-1, len(RESOURCES))
        nodes = pd.DataFrame(on_nodes, columns=columns)
        times = [begin + timedelta(seconds=_SLOT * slot) for slot in range(SLOTS_PER_DAY)]
        nodes["timestamp"] = np.repeat(np.array(times, dtype=object), N_NODES)
        nodes["timestamp"] = pd.to_datetime(nodes["timestamp"], utc=True)
        nodes["node"] = [node_name(number) for number in range(N_NODES)] * SLOTS_PER_DAY
        nodes.to_parquet(self.history / "nodes.parquet" / f"{day}.parquet", index=False)
        pods = [
            (NAMESPACE, f"Deployment/{service}", pod, float(REQUEST_CORES), 2.0**30)
            for pod, service in sorted(self._pods.items())
        ]
        names = ["namespace", "service", "pod", "request_cpu_cores", "request_memory_bytes"]
        pd.DataFrame(pods, columns=names).to_parquet(self.history / "pods.parquet", index=False)

    def serve(self, day: date, placements: Placements) -> None:
        """Write a local day for Prometheus, which reads it at its next start."""
        write_blocks(self._series(day, placements), self.blocks)

    def _series(self, day: date, placements: Placements) -> list[MetricSeries]:
        """Return samples at the end of the five minutes that they are of."""
        begin = int(self._world.calendar.midnight(day).timestamp())
        per_slot = _SLOT // _STEP
        times = begin + _STEP * np.arange(1, SLOTS_PER_DAY * per_slot + 1)
        series = []
        for number, usage in enumerate(self._world.node_usage(day, placements)):
            for resource, values in zip(RESOURCES, usage, strict=True):
                labels = {"node": node_name(number), "resource": resource.name}
                series.append(MetricSeries(NODE_USAGE, labels, times, np.repeat(values, per_slot)))
        there: dict[tuple[str, str], np.ndarray] = {}
        for slot, seats in enumerate(placements):
            for seat in seats:
                there.setdefault((seat.service, seat.pod), np.zeros(SLOTS_PER_DAY, dtype=bool))[slot] = True
        for (service, pod), is_there in there.items():
            kept = np.repeat(is_there, per_slot)
            for resource, values in zip(RESOURCES, self._world.pod_usage(service, day), strict=True):
                labels = {"namespace": NAMESPACE, "pod": pod, "resource": resource.name}
                series.append(MetricSeries(POD_USAGE, labels, times[kept], np.repeat(values, per_slot)[kept]))
        return series


def seats_at_first(world: TwoPeaks) -> list[Seat]:
    """Return the pods as they were placed at first, with names as a ReplicaSet gives them."""
    return [
        Seat(service, f"{service}-5d9c7b6f4d-{number:05d}", node)
        for service, nodes in world.nodes_at_first().items()
        for number, node in enumerate(nodes)
    ]


def days_before(today: date, n_days: int) -> list[date]:
    """Return the days before a day, oldest first."""
    return [today - timedelta(days=ahead) for ahead in range(n_days, 0, -1)]
