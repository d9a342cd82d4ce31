"""The cells of a UTC day -> the tables of the history, by the arithmetic that reads a day from Prometheus. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from forecast.resources import CPU, MEMORY
from forecast.service_key import Owner
from trainer.history.cleaning import Tally
from trainer.prometheus.day_assembly import DayRead, assemble
from trainer.prometheus.day_tables import DayTables
from trainer.prometheus.limit_hits import LimitHitsRead
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.node_names import NodeFacts, NodeNames
from trainer.prometheus.pods_of_day import PodsOfDay, pods_of_day
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.prometheus.query_times import DayGrid
from trainer.prometheus.samples import Samples
from trainer.sampling.cells import CELL_SECONDS
from trainer.sampling.journal import Cell, NodeRecord, PodRecord, Record, numbers_of, usage_of

_RESOURCES = ((CPU, "cpu"), (MEMORY, "memory"))


@dataclass(slots=True)
class RecordedDay:
    """What is known of a UTC day: records in the order in which they were written.

    pods  : by their numbers, which count from 0, as they were last
    cells : by tick of the day; of two readings of one cell, after the clock was set back, the last one counts
    """

    day: date
    pods: dict[int, PodRecord] = field(default_factory=dict)
    cells: dict[int, Cell] = field(default_factory=dict)
    _capacity: dict[tuple[str, int], float] = field(default_factory=dict)
    _allocatable: dict[tuple[str, int], float] = field(default_factory=dict)
    _nodes: set[str] = field(default_factory=set)

    def add(self, record: Record) -> None:
        """Take in one record."""
        if isinstance(record, PodRecord):
            self.pods[record.number] = record
        elif isinstance(record, Cell):
            tick = (record.start - self.start) // CELL_SECONDS
            if 0 <= tick < 86_400 // CELL_SECONDS:
                self.cells[tick] = record
        else:
            self._add_node(record)

    @property
    def start(self) -> int:
        """Unix seconds of its midnight."""
        return int(datetime.combine(self.day, time(), UTC).timestamp())

    @property
    def read_until(self) -> datetime:
        """When the last cell ends; midnight without one."""
        last = max(self.cells, default=-1)
        return datetime.combine(self.day, time(), UTC) + timedelta(seconds=(last + 1) * CELL_SECONDS)

    def tables(self, options: SourceOptions) -> DayTables:
        """The day as far as it is recorded. Raises InputError where what was read cannot be."""
        grid = DayGrid.of(self.day, self.read_until, CELL_SECONDS)
        tally = Tally()
        if grid.n_ticks == 0:
            return assemble(options, grid, DayRead.nothing(grid), tally)
        ticks = sorted(self.cells)
        read = replace(
            DayRead.nothing(grid),
            pods=self._pods_of_day(grid, ticks),
            samples=self._samples(grid, ticks),
            requests=self._requests(),
            facts=NodeFacts(frozenset(self._nodes), {}, self._capacity, self._allocatable),
            names=NodeNames(frozenset(self._nodes), {}),
            hits=LimitHitsRead(grid, (), {}),
        )
        return assemble(options, grid, read, tally)

    def _add_node(self, node: NodeRecord) -> None:
        self._nodes.add(node.name)
        for (resource, _), capacity, allocatable in zip(_RESOURCES, node.capacity, node.allocatable, strict=True):
            key = node.name, resource
            if capacity is not None:  # the largest of the day: no honest value is above it
                self._capacity[key] = max(capacity, self._capacity.get(key, 0.0))
            if allocatable is not None:
                self._allocatable[key] = allocatable

    def _pods_of_day(self, grid: DayGrid, ticks: Sequence[int]) -> PodsOfDay:
        labels = tuple(_info(self.pods[number]) for number in range(len(self.pods)))
        series, tick = _flat([numbers_of(self.cells[tick].pods) for tick in ticks], ticks)
        owners = {(pod.namespace, *pod.owner): Owner(*pod.top) for pod in self.pods.values() if pod.top is not None}
        return pods_of_day([Matrix(labels, series, tick, np.ones(len(series)))], grid.n_ticks, owners)

    def _samples(self, grid: DayGrid, ticks: Sequence[int]) -> dict[str, Samples]:
        cells = [self.cells[tick] for tick in ticks]
        pods = [self.pods[number] for number in range(len(self.pods))]
        nodes = sorted({name for cell in cells for name in cell.nodes})
        row = {name: number for number, name in enumerate(nodes)}
        of_pods = tuple({"namespace": pod.namespace, "pod": pod.name} for pod in pods)
        of_nodes = tuple({"node": name} for name in nodes)
        pod_rows = [numbers_of(cell.pods) for cell in cells]
        node_rows = [np.array([row[name] for name in cell.nodes], dtype=np.int64) for cell in cells]
        found = {}
        for column, (_, resource) in enumerate(_RESOURCES):
            pod_values = [usage_of(cell.pod_usage)[:, column] for cell in cells]
            node_values = [usage_of(cell.node_usage)[:, column] for cell in cells]
            for part, query in (
                (_matrix(of_pods, pod_rows, ticks, pod_values), f"pod_{resource}"),
                (_matrix(of_nodes, node_rows, ticks, node_values), f"node_{resource}"),
            ):
                # As what rules recorded, where a name may come twice: a pod that moved has two objects of one name.
                found[query] = Samples((part,), (), np.zeros(grid.n_ticks, dtype=bool), query)
        return found

    def _requests(self) -> dict[tuple[str, str, str], Floats]:
        return {
            (pod.namespace, pod.name, pod.uid): np.array(
                [np.nan if value is None else value for value in pod.requests], dtype=np.float64
            )
            for pod in self.pods.values()
        }


def _info(pod: PodRecord) -> Mapping[str, str]:
    """The labels of kube_pod_info."""
    kind, name = pod.owner
    return {
        "namespace": pod.namespace,
        "pod": pod.name,
        "uid": pod.uid,
        "node": pod.node,
        "created_by_kind": kind or "<none>",
        "created_by_name": name or "<none>",
        "host_network": "false",  # it only matters to network usage, which is not recorded
    }


def _flat(rows: Sequence[Ints], ticks: Sequence[int]) -> tuple[Ints, Ints]:
    """Series and tick of each sample."""
    none = np.zeros(0, dtype=np.int64)
    tick = [np.full(len(one), tick, dtype=np.int64) for one, tick in zip(rows, ticks, strict=True)]
    return np.concatenate([none, *rows]), np.concatenate([none, *tick])


def _matrix(
    labels: tuple[Mapping[str, str], ...], rows: Sequence[Ints], ticks: Sequence[int], values: Sequence[AnyFloats]
) -> Matrix:
    """Of what is measured only."""
    series, tick = _flat(rows, ticks)
    value = np.concatenate([np.zeros(0), *values]).astype(np.float64)
    known = np.isfinite(value)
    return Matrix(labels, series[known], tick[known], value[known])
