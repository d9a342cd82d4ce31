"""The rules that a replay compares: each picks a node for one pod at a time, knowing only the cluster's state and what
it may.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from cluster.predicted.load import PredictedLoad
from cluster.predicted.power_growth import BEST_NODES, MEMORY_LIMIT, RESOURCE_WEIGHTS
from cluster.predicted.unknown_capacity import any_limit, limited, neutral_where_unknown
from cluster.scale_out import soft_load
from forecast.resources import MEMORY
from scorer.replay.curves import CurveForecast, JobPods
from scorer.scores.balanced_allocation import balanced_allocation_score
from scorer.scores.energy import best_nodes
from scorer.scores.least_allocated import least_allocated_score, nonzero_requests

_SAME_OVERCOMMITMENT = 1.05

LIVE_HALF_LIFE_SLOTS = 12
"""What a node uses beyond its forecast is halved every six hours: by tomorrow it says nothing."""

FULL = 1.0
"""Share of capacity from which requests alone no longer decide. Passing over nodes from 0.95 on was worse than native
(22.1 % against 20.7 % hot on the Bitbrains cluster with nodes 1 : 2 : 4); from 1.0 on nothing differs beyond noise.
"""


@dataclass(frozen=True, slots=True)
class ReplayedPod:
    """A pod to be placed.

    requests : (2,) CPU cores and memory bytes; 0 = none
    live     : (n_resources,) what it uses now, or what pods of its service use now
    index    : of the pod in the recording
    """

    service: int
    requests: Floats
    live: Floats
    index: int = 0


class ReplayState:
    """Nodes in columns.

    capacity    : (n_nodes, n_resources) known ones; NaN = not a limit
    requested   : (n_nodes, 2) sum of requests; `requested_nonzero` counts pods without requests at their default
    live_usage  : (n_nodes, n_resources) usage in the last half hour, pods placed since then included
    measured_counts : (n_nodes, n_services) the pods whose usage was measured in that half hour, those that have left
                  since included; one that was there for a third of it counts a third
    counts      : (n_nodes, n_services) pods
    arriving    : (n_services,) pods that are placed in this slot, all of them, wherever they go
    overcommitted : pods so far that fitted nowhere
    service_requests : (n_services, 2) what one more pod of a service would request
    """

    def __init__(self, capacity: Floats, allocatable: Floats, live_base: Floats, service_requests: Floats) -> None:
        self.capacity, self.allocatable, self.service_requests = capacity, allocatable, service_requests
        self.requested = np.zeros_like(allocatable)
        self.requested_nonzero = np.zeros_like(allocatable)
        self.live_usage = live_base.copy()
        self.counts = np.zeros((len(capacity), len(service_requests)))
        self.measured_counts = np.zeros_like(self.counts)
        self.arriving = np.zeros(len(service_requests))
        self.overcommitted = 0

    def feasible(self, pod: ReplayedPod) -> Bools:
        """Nodes on which the requests fit: (n_nodes,). Where none is, the least overcommitted ones, and it is counted.

        kube-scheduler would leave such a pod pending; here every rule has to carry the same load.
        """
        wanted = self.requested + pod.requests
        # A resource the pod does not ask for cannot keep it out (NodeResourcesFit does the same).
        fits = ((wanted <= self.allocatable * (1 + 1e-9)) | (pod.requests <= 0)).all(axis=1)
        if fits.any():
            return np.asarray(fits)
        self.overcommitted += 1
        over = (wanted / np.maximum(self.allocatable, 1e-12)).max(axis=1)
        return np.asarray(over <= over.min() * _SAME_OVERCOMMITMENT)

    def expect(self, arriving: Floats) -> None:
        """(n_services,) pods are about to be placed."""
        self.arriving = arriving

    def lose(self, nodes: Bools) -> None:
        """(n_nodes,) nodes that are gone: nothing fits there any more."""
        self.allocatable = np.where(nodes[:, None], 0.0, self.allocatable)

    def measure(self, usage: Floats, counts: Floats) -> None:
        """A half hour is over: usage of the nodes (n_nodes, n_resources), by these pods (n_nodes, n_services)."""
        self.live_usage, self.measured_counts = usage, counts

    def add(self, pod: ReplayedPod, node: int) -> None:
        """The pod runs on `node` from now on."""
        self.requested[node] += pod.requests
        self.requested_nonzero[node] += nonzero_requests(pod.requests)
        self.live_usage[node] += pod.live
        self.counts[node, pod.service] += 1

    def remove(self, service: int, requests: Floats, node: int) -> None:
        """The pod is gone. Live usage is measured anew before it is looked at again."""
        self.requested[node] -= requests
        self.requested_nonzero[node] -= nonzero_requests(requests)
        self.counts[node, service] -= 1


def replicas_to_come(forecast: CurveForecast, state: ReplayState) -> AnyFloats:
    """Expected load of replicas still to come: (n_nodes, n_resources, n_slots).

    Owners of Jobs are not autoscaled: as in the scorer (cluster.scale_out), no room is kept for tomorrow's runs.

    Pods that are about to be placed in this slot are there already: they count as replicas now, and take room on all
    nodes, by their size, since it is not known yet where they go.
    """
    scaled = np.flatnonzero(forecast.autoscaled)
    now = state.counts[:, scaled].sum(axis=0) + state.arriving[scaled]  # (n_scaled,)
    extra = np.maximum(forecast.replicas[scaled] - now[:, None], 0.0)  # (n_scaled, n_slots)
    if not extra.any():
        return np.zeros((len(state.capacity), *forecast.mean.shape[1:]))
    size = np.where(np.isfinite(state.allocatable[:, 0]), state.allocatable[:, 0], 1.0)
    arriving = np.outer(size / size.sum(), state.arriving @ state.service_requests)  # (n_nodes, 2)
    free = np.maximum(state.allocatable - state.requested - arriving, 0.0)  # (n_nodes, 2)
    return soft_load(extra, forecast.mean[scaled], state.service_requests[scaled], free, size)


class ReplayRule(Protocol):
    """Picks nodes. `added` and `removed` report what became of the pods."""

    def observe(self, slot: int, state: ReplayState) -> None:
        """Called before pods are placed in `slot`, when those that left are gone.

        `state.live_usage` and `state.measured_counts` now hold the slot before, `state.arriving` what is to be placed.
        """

    def choose(self, pod: ReplayedPod, feasible: Bools, state: ReplayState) -> int:
        """The node for the pod, among the feasible ones."""

    def added(self, pod: ReplayedPod, node: int) -> None:
        """The pod runs on the node."""

    def removed(self, pod: ReplayedPod, node: int) -> None:
        """The pod is gone."""


class _Forgetful:
    """A rule that needs nothing but the state of the cluster."""

    def observe(self, slot: int, state: ReplayState) -> None:
        pass

    def added(self, pod: ReplayedPod, node: int) -> None:
        pass

    def removed(self, pod: ReplayedPod, node: int) -> None:
        pass


class Native(_Forgetful):
    """kube-scheduler v1.36 with default weights: LeastAllocated 1, BalancedAllocation 1, ties broken at random."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def choose(self, pod: ReplayedPod, feasible: Bools, state: ReplayState) -> int:
        score = least_allocated_score(state.requested_nonzero, nonzero_requests(pod.requests), state.allocatable)
        score = score + balanced_allocation_score(state.requested, pod.requests, state.allocatable)
        score = np.where(feasible, score, -1)
        return int(self._rng.choice(np.flatnonzero(score == score.max())))


class Live(_Forgetful):
    """The node with the lowest mean share of capacity in use right now, the pod included."""

    def choose(self, pod: ReplayedPod, feasible: Bools, state: ReplayState) -> int:
        share = _live_share(pod, state)
        mean = np.where(np.isfinite(share), share, 0.0).sum(axis=1) / np.maximum(np.isfinite(share).sum(axis=1), 1)
        mean = neutral_where_unknown(mean, any_limit(state.capacity))
        return int(np.where(feasible, mean, np.inf).argmin())


class RequestsAvoidingFull(Native):
    """Native, except that nodes whose usage is at capacity right now are passed over while there are others."""

    def choose(self, pod: ReplayedPod, feasible: Bools, state: ReplayState) -> int:
        share = _live_share(pod, state)
        free = feasible & ~(np.where(np.isfinite(share), share, 0.0) > FULL).any(axis=1)
        return super().choose(pod, free if free.any() else feasible, state)


class ByCurves:
    """The node where the expected load of the days to come grows least: energy, then exact peaks of the best few."""

    def __init__(
        self, forecast: CurveForecast, capacity: Floats, *, jobs: JobPods | None = None, live_correction: bool = True
    ) -> None:
        """
        jobs            : when pods of Job owners are expected to end; None = every pod runs on and on
        live_correction : let what nodes use beyond their forecast count, fading with time
        """
        self._forecast, self._jobs = forecast, jobs
        self._live_correction = live_correction
        self._curves, weights = forecast.points()
        self._weights = weights.reshape(forecast.n_curves, -1)  # (n_curves, n_slots)
        self._load = PredictedLoad(weights, RESOURCE_WEIGHTS)
        base = forecast.on_points(forecast.base)
        for usage in self._curves:
            self._load.add_profile(usage)
        for node in range(len(capacity)):
            self._load.set_node(node, capacity[node], base[node])
        self._slot = 0
        self._profile_until: dict[tuple[int, int], int] = {}  # by service and end of the run
        self._seats: dict[int, _Seat] = {}  # by pod

    def observe(self, slot: int, state: ReplayState) -> None:
        forecast = self._forecast
        self._slot = slot
        self._follow_overdue_runs()
        slots = np.arange(self._weights.shape[1])
        if slot > 0 and self._live_correction:
            fading = np.where(slots >= slot, 0.5 ** ((slots - slot) / LIVE_HALF_LIFE_SLOTS), 0.0)
            self._load.set_live_error(self.live_error(slot, state), forecast.on_points(fading))
        self._load.set_base(forecast.on_points(forecast.base + replicas_to_come(forecast, state)))
        # What is over costs nothing any more, and its height does not matter.
        self._load.set_weights(np.where(slots >= slot, self._weights, 0.0).ravel())

    def live_error(self, slot: int, state: ReplayState) -> Floats:
        """Usage in the slot before beyond what was expected of the pods there then: (n_nodes, n_resources).

        Not of the pods there now: the load of those that left in between would look like an error for hours. The part
        of the error that belongs to jobs which have ended since, by what was expected of them, has ended too.
        """
        forecast = self._forecast
        usage = forecast.mean[:, :, slot - 1]
        predicted = state.measured_counts @ usage + forecast.base[:, :, slot - 1]
        error = np.asarray(state.live_usage - predicted)
        if self._jobs is None or not self._jobs.ending.any():
            return error
        ending = self._jobs.ending
        ended = np.maximum(state.measured_counts[:, ending] - state.counts[:, ending], 0.0) @ usage[ending]
        return np.asarray(error * (1.0 - np.minimum(ended / np.maximum(predicted, 1e-12), 1.0)))

    def choose(self, pod: ReplayedPod, feasible: Bools, state: ReplayState) -> int:
        profile = self._profile(pod.service, self._end(pod))
        safe = feasible & (self._load.peak_with(profile, MEMORY) <= MEMORY_LIMIT)
        few = best_nodes(self._load.growth(profile), safe if safe.any() else feasible, BEST_NODES)
        return int(few[self._load.power_growth(profile, few).argmin()])

    def peak_share(self, pod: ReplayedPod, node: int) -> float:
        """Highest expected share of capacity, over resources and half hours, of a node with the pod."""
        return float(self._load.peaks_with(self._profile(pod.service, self._end(pod)), np.array([node])).max())

    def added(self, pod: ReplayedPod, node: int) -> None:
        end = self._end(pod)
        seat = self._seats[pod.index] = _Seat(pod.service, node, end, self._profile(pod.service, end))
        self._load.add(seat.profile, node)

    def removed(self, pod: ReplayedPod, node: int) -> None:
        self._load.add(self._seats.pop(pod.index).profile, node, -1)

    def _end(self, pod: ReplayedPod) -> int:
        """Slot in which the pod is expected to have ended; one that is there runs through this one at least."""
        return self._weights.shape[1] if self._jobs is None else max(int(self._jobs.end[pod.index]), self._slot + 1)

    def _profile(self, service: int, end: int) -> int:
        """Profile of a pod that runs until `end`."""
        n_slots = self._weights.shape[1]
        if end >= n_slots:
            return service
        key = service, end
        if key not in self._profile_until:
            runs = self._forecast.on_points((np.arange(n_slots) < end).astype(np.float64))
            self._profile_until[key] = self._load.add_profile(self._curves[service] * runs)
        return self._profile_until[key]

    def _follow_overdue_runs(self) -> None:
        """Pods that are still there past their expected end run through this slot at least."""
        for index, seat in self._seats.items():
            if seat.end <= self._slot:
                later = self._slot + 1
                self._load.add(seat.profile, seat.node, -1)
                self._seats[index] = seat = replace(seat, end=later, profile=self._profile(seat.service, later))
                self._load.add(seat.profile, seat.node)


@dataclass(frozen=True, slots=True)
class _Seat:
    """Where a pod sits, until when, and by which profile it is counted."""

    service: int
    node: int
    end: int
    profile: int


def _live_share(pod: ReplayedPod, state: ReplayState) -> Floats:
    """Share of capacity in use with the pod: (n_nodes, n_resources), NaN where capacity is no limit."""
    limits = limited(state.capacity)
    return np.where(limits, (state.live_usage + pod.live) / np.where(limits, state.capacity, 1.0), np.nan)
