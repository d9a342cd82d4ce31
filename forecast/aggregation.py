"""From pods to services and nodes: builds a `History` out of pods on the half-hour grid, some days at a time.

Only one window of days is held per pod; what grows with the history is per service and per node. Reading samples and
laying them on the grid is done before (`sample_grid`, trainer.history.files).

Pods that come with their node (DaemonSets, static pods) are not given to the builder: what they use is the node's base.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from base.arrays import Bools, Floats, Floats32, Ints
from forecast.calendar import SLOTS_PER_DAY, Calendar
from forecast.history import History, Placements
from forecast.job_runs import SampleTimes, collect_runs
from forecast.limit_hits import PodHits
from forecast.peak_weights.observations import WINDOW_DAYS
from forecast.resources import CPU, RESOURCES
from forecast.sample_grid import Ints32
from forecast.service_key import ServiceKey
from forecast.usage_limits import CutSeries, Excess, fleet_limits, fold, services_beyond, typical_peaks

_N_RESOURCES = len(RESOURCES)
# A pod sits on a node in a slot if it was there for at least half of it: a rollout's old and new pods count once.
_SITS = 0.5


@dataclass(frozen=True, slots=True)
class PodTable:
    """All pods of a history, sorted by service.

    pods     : "namespace/name"
    service  : (n_pods,) index into services, ascending
    requests : (n_pods, 2) CPU cores and memory bytes; NaN = unknown
    """

    pods: tuple[str, ...]
    services: tuple[ServiceKey, ...]
    service: Ints
    requests: Floats


@dataclass(frozen=True, slots=True)
class NodeTable:
    """All nodes of a history, sorted.

    capacity       : (n_nodes, n_resources) as known last; NaN = not a limit
    allocatable    : (n_nodes, 2) CPU cores, memory bytes, as known last; NaN = unknown
    daily_capacity : as `History.daily_capacity`
    """

    nodes: tuple[str, ...]
    capacity: Floats
    allocatable: Floats
    daily_capacity: Floats | None = None

    def capacity_on(self, day: int) -> Floats:
        """Capacity that a day is judged by: (n_nodes, n_resources)."""
        return self.capacity if self.daily_capacity is None else self.daily_capacity[:, :, day]


@dataclass(frozen=True, slots=True)
class PodWindow:
    """The pods that existed during some consecutive days.

    first_day : index of the window's first day in the history
    pod       : (n_here,) index into the pod table, ascending
    usage     : (n_here, n_resources, n_days, 48) mean while present, base units; NaN = not measured
    present   : (n_here, n_days, 48) share of the slot during which the pod was there, 0..1
    node      : (n_here, n_days, 48) node it was last seen on in the slot; -1 = none
    any_data  : (n_days, 48) whether the slot holds any sample of any pod
    times     : when each of the pods was sampled; None = unknown, and no run of a Job pod is learned from the window
    """

    first_day: int
    pod: Ints
    usage: Floats32
    present: Floats32
    node: Ints32
    any_data: Bools
    times: SampleTimes | None = None


class HistoryBuilder:
    """Collects windows in the order of time; `finish` gives the History. hits: how limits held pods back, if known."""

    def __init__(
        self, calendar: Calendar, days: tuple[date, ...], pods: PodTable, nodes: NodeTable, hits: PodHits | None = None
    ) -> None:
        n_services, n_nodes, n_days = len(pods.services), len(nodes.nodes), len(days)
        self._calendar, self._days, self._pods, self._nodes, self._hits = calendar, days, pods, nodes, hits
        self._usage = _unknown(n_services, _N_RESOURCES, n_days, SLOTS_PER_DAY)
        self._variance = _unknown(n_services, _N_RESOURCES, n_days, SLOTS_PER_DAY)
        self._replicas = _unknown(n_services, n_days, SLOTS_PER_DAY)
        self._node_usage = _unknown(n_nodes, _N_RESOURCES, n_days, SLOTS_PER_DAY)
        self._node_pod_usage = _unknown(n_nodes, _N_RESOURCES, n_days, SLOTS_PER_DAY)
        self._is_group = np.array([service.is_group for service in pods.services], dtype=np.bool_)
        self._one_off_usage = np.zeros_like(self._node_usage) if self._is_group.any() else None
        self._any_data = np.zeros(n_days * SLOTS_PER_DAY, dtype=np.bool_)
        self._requests = np.full((n_services, 2, n_days), np.nan)  # of the pods of each day
        self._runs: list[Ints] = []  # each (4, n_runs): pod, node, first, end
        self._is_job_owner = np.array([service.runs_to_completion for service in pods.services], dtype=np.bool_)
        self._job_pods: list[tuple[Ints, SampleTimes]] = []  # rows of the pod table, and when they were sampled
        self._typical: Floats | None = None  # from `typical_peaks`
        self._excess: list[Excess] = []
        self._excess_days: list[int] = []
        self._beyond_fleet = 0

    def add_pods(self, window: PodWindow) -> None:
        """Reduce one window. Windows must not overlap and must come in the order of time, after all nodes.

        Usage that the nodes' own cannot hold is cut (`forecast.usage_limits`); see `cut`.
        """
        service = self._pods.service[window.pod]
        if self._typical is None:
            self._typical = typical_peaks(self._node_usage)
            # Which nodes have a known capacity is the same on all days.
            beyond = self._node_usage > fleet_limits(self._typical, self._nodes.capacity)[0][:, :, None, None]
            self._beyond_fleet = int(np.count_nonzero(beyond))
            self._node_usage[beyond] = np.nan
        for offset in range(window.any_data.shape[0]):
            day = window.first_day + offset
            usage = window.usage[:, :, offset].astype(np.float64)  # (n_here, n_resources, 48)
            present = window.present[:, offset].astype(np.float64)  # (n_here, 48)
            any_data = window.any_data[offset]
            node, own = window.node[:, offset].astype(np.int64), self._node_usage[:, :, day]
            capacity = self._nodes.capacity_on(day)
            limit, floor = fleet_limits(self._typical, capacity)
            cut, excess = services_beyond(usage, present, node, service, own, capacity, floor, limit)
            if len(excess.service):
                self._excess.append(excess)
                self._excess_days.append(day)
                usage = np.where(cut, np.nan, usage)
            if self._hits is not None:
                self._hits.measure(window.pod, day, usage[:, CPU])
            self._reduce_services(day, service, usage, present, any_data)
            self._reduce_nodes(self._node_pod_usage, day, node, usage, present, any_data)
            if self._one_off_usage is not None:
                of_groups = self._is_group[service]
                parts = (node[of_groups], usage[of_groups], present[of_groups])
                self._reduce_nodes(self._one_off_usage, day, *parts, any_data)
            self._reduce_requests(day, window.pod[(present > 0).any(axis=1)])
        begin, n_slots = window.first_day * SLOTS_PER_DAY, window.any_data.size
        self._any_data[begin : begin + n_slots] = window.any_data.ravel()
        self._runs.append(_runs(window))
        if window.times is not None:
            mine = self._is_job_owner[service] & (window.times.first >= 0)
            times = replace(window.times, first=window.times.first[mine], last=window.times.last[mine])
            self._job_pods.append((window.pod[mine], times))

    def add_nodes(self, first_day: int, usage: Floats32) -> None:
        """Whole-node usage of some days: (n_nodes, n_resources, n_days, 48), NaN = not measured."""
        self._node_usage[:, :, first_day : first_day + usage.shape[2]] = usage

    @property
    def cut(self) -> tuple[CutSeries, ...]:
        """What was cut of the windows so far."""
        return fold(self._excess)

    @property
    def beyond_fleet(self) -> int:
        """Half hours of nodes without a known capacity that are not believed, far beyond those of all others."""
        return self._beyond_fleet

    def finish(self) -> History:
        """The history of everything added; days without a window stay "no data"."""
        self._leave_out_what_was_cut()
        allocatable = np.where(np.isnan(self._nodes.allocatable), self._nodes.capacity[:, :2], self._nodes.allocatable)
        return History(
            calendar=self._calendar,
            days=self._days,
            services=self._pods.services,
            nodes=self._nodes.nodes,
            usage_per_pod=self._usage,
            replicas=self._replicas,
            pod_variance=self._variance,
            node_usage=self._node_usage,
            node_pod_usage=self._node_pod_usage,
            one_off_usage=self._one_off_usage,
            placements=self._placements(),
            capacity=self._nodes.capacity,
            allocatable=allocatable,
            daily_requests=_carried_on(self._requests),
            runs=collect_runs(self._job_pods, self._pods.service, self._calendar, self._days[0]),
            daily_capacity=self._nodes.daily_capacity,
            limit_hits=None if self._hits is None else self._hits.of_services(self._pods.service, self._replicas),
        )

    def _leave_out_what_was_cut(self) -> None:
        """Leave out half hours of nodes whose pods were cut: without a sum of pods they say nothing about the rest of
        the node.

        Half hours of services without any measured pod stay, in the days that the regression looks at. It learns from
        them what such pods use.
        """
        recent = self._usage[:, :, -WINDOW_DAYS:]
        measured: Bools = np.any(np.isfinite(recent), axis=(2, 3))  # (n_services, n_resources)
        for day, excess in zip(self._excess_days, self._excess, strict=True):
            known = measured[excess.service, excess.resource]
            self._node_pod_usage[excess.node[known], excess.resource[known], day, excess.slot[known]] = np.nan

    def _reduce_services(self, day: int, service: Ints, usage: Floats, present: Floats, any_data: Bools) -> None:
        """Mean, variance between pods and replica count of one day.

        A pod that was there for a third of the slot counts a third: mean = sum(present * usage) / sum(present).
        """
        # Where there is data, a service without pods has 0 of them.
        self._replicas[:, day] = np.where(any_data, 0, np.nan)
        if not len(service):
            return
        starts = np.flatnonzero(np.diff(service, prepend=-1))
        here = service[starts]  # (n_services_here,)
        group = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(service)))
        self._replicas[here, day] = np.where(any_data, np.add.reduceat(present, starts, axis=0), np.nan)
        measured = np.isfinite(usage)
        weight = np.where(measured, present[:, None], 0)  # (n_here, n_resources, 48)
        usage = np.where(measured, usage, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.add.reduceat(weight * usage, starts) / np.add.reduceat(weight, starts)
            self._usage[here, :, day] = mean
            # Unbiased variance over the pods that were there for most of the slot: shorter stays are too noisy.
            counted = weight >= _SITS
            n = np.add.reduceat(counted, starts, dtype=np.int64)
            centre = np.add.reduceat(np.where(counted, usage, 0), starts) / n
            squares = np.where(counted, (usage - centre[group]) ** 2, 0)
            self._variance[here, :, day] = np.where(n >= 2, np.add.reduceat(squares, starts) / (n - 1), np.nan)

    def _reduce_nodes(
        self, table: Floats32, day: int, node: Ints, usage: Floats, present: Floats, any_data: Bools
    ) -> None:
        """Sum of measured pods on each node on one day; NaN where it has pods and none of them was measured.

        table : (n_nodes, n_resources, n_days, 48), filled in
        """
        n_nodes = len(self._nodes.nodes)
        pod, slot = np.nonzero((node >= 0) & (present > 0))
        cell = node[pod, slot] * SLOTS_PER_DAY + slot
        size = n_nodes * SLOTS_PER_DAY
        occupied = np.bincount(cell, minlength=size) > 0
        for resource in range(_N_RESOURCES):
            values = usage[pod, resource, slot] * present[pod, slot]
            measured = np.isfinite(values)
            total = np.bincount(cell[measured], weights=values[measured], minlength=size)
            known = np.bincount(cell[measured], minlength=size) > 0
            of_day = np.where(occupied & ~known, np.nan, total).reshape(n_nodes, SLOTS_PER_DAY)
            table[:, resource, day] = np.where(any_data, of_day, np.nan)

    def _reduce_requests(self, day: int, pod: Ints) -> None:
        """Mean request per service over the pods of one day that have a known one."""
        n_services = len(self._pods.services)
        for column in range(2):
            known = pod[np.isfinite(self._pods.requests[pod, column])]
            service = self._pods.service[known]
            count = np.bincount(service, minlength=n_services)
            total = np.bincount(service, weights=self._pods.requests[known, column], minlength=n_services)
            self._requests[:, column, day] = np.where(count > 0, total / np.maximum(count, 1), np.nan)

    def _placements(self) -> Placements:
        """All runs; those of one pod on one node are joined over window borders and over slots without any data."""
        table = np.concatenate([*self._runs, np.empty((4, 0), dtype=np.int64)], axis=1)
        pod, node, first, end = table[:, np.lexsort((table[2], table[0]))]
        data_before = np.concatenate([[0], np.cumsum(self._any_data)])  # slots with data before each slot
        joined = (pod[1:] == pod[:-1]) & (node[1:] == node[:-1]) & (data_before[first[1:]] == data_before[end[:-1]])
        begins = np.concatenate([[True], ~joined])[: len(pod)]
        ends = np.concatenate([~joined, [True]])[: len(pod)]
        pod = pod[begins]
        return Placements(
            pod=pod, service=self._pods.service[pod], node=node[begins], first=first[begins], end=end[ends]
        )


def _unknown(*shape: int) -> Floats32:
    return np.full(shape, np.nan, dtype=np.float32)


def _carried_on(by_day: Floats) -> Floats:
    """Days without a value take that of the last day before them, never a later one: (..., n_days)."""
    day = np.where(np.isfinite(by_day), np.arange(by_day.shape[-1]), 0)
    return np.take_along_axis(by_day, np.maximum.accumulate(day, axis=-1), axis=-1)


def _runs(window: PodWindow) -> Ints:
    """Runs of slots on one node within a window: (4, n_runs) pod, node, first, end (history slots)."""
    n_here, n_slots = len(window.pod), window.any_data.size
    sits = (window.present >= _SITS) & (window.node >= 0)
    node = np.where(sits, window.node, -1).reshape(n_here, n_slots)
    edge = np.full((n_here, 1), -1, dtype=node.dtype)
    before, after = np.hstack([edge, node[:, :-1]]), np.hstack([node[:, 1:], edge])
    row, first = np.nonzero((node != before) & (node >= 0))
    _, last = np.nonzero((node != after) & (node >= 0))
    begin = window.first_day * SLOTS_PER_DAY
    return np.stack([window.pod[row], node[row, first].astype(np.int64), first + begin, last + 1 + begin])
