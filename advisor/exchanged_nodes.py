"""Pods of several controllers that wait together have their nodes: some of them exchange these before the advice is
written (cluster/predicted/placed_together.py). The search has copies of the tables, and needs no lock.

A pod takes part if only room, requests and the predicted peak decided between its nodes (Placer.movable). It has no
topology spread of its own, no room is reserved for it, and it stays in its zone. On a node with a pod that takes no
part nothing changes: that pod's terms may mean others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from cluster.assuming_cluster import AssumingCluster
from cluster.predicted.load import PredictedLoad
from cluster.predicted.placed_together import FilledNodes, Release, rearranged
from forecast.resources import CPU
from kube.objects.objects import PodInfo
from kube.objects.pod_shape import shape_of
from placement.filters.filter import ClusterView, Filter
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.pods_that_fit import room_for
from placement.scores.default_scores import parts_beside_allocation
from scheduler.cycle.placing import UnitPlacer
from scheduler.cycle.reserve import reserved, unreserve
from scheduler.profile import SchedulingProfile
from scheduler.queue.queued_pods import QueuedPodInfo

MOST_NODES: Final = 1000
"""Nodes that are looked at beyond those of the pods, the ones whose CPU is predicted lowest at its peak: the tables of
the search have 30 kB a node."""

TOGETHER: Final = 256
"""Pods of a burst that are looked at at once."""

FEWEST: Final = 16
"""Copying the tables of the nodes takes as long for a few pods, which gain little."""

_LONGEST_SECONDS: Final = 0.3
"""What a search may take: pods wait for their advice meanwhile."""

_NO_END: Final = 1_000_000
"""Pods that no filter of this many keeps from a node."""

_ZONE: Final = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class _Part:
    """A pod that takes part. Nodes are rows.

    rows   : that it may go to, ascending, its own among them
    wanted : whole units of what it requests
    """

    pod: PodInfo
    row: int
    rows: Ints
    profile: int
    wanted: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Exchange:
    """Which pods go to which rows instead."""

    parts: Sequence[_Part]
    rows: Sequence[int]


class PlacedTogether:
    """Implements Together. profiles: by scheduler name."""

    def __init__(
        self,
        view: ClusterView,
        cluster: AssumingCluster,
        profiles: Mapping[str, SchedulingProfile],
        *,
        fewest: int = 2,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        """fewest: pods that are looked at at once; of fewer, all keep their nodes"""
        self._view, self._cluster, self._profiles, self._stopwatch = view, cluster, profiles, stopwatch
        self._fewest = fewest
        self._parts: list[_Part] = []
        self._fixed: set[int] = set()

    def note(self, placed: Sequence[tuple[QueuedPodInfo, str]], placer: UnitPlacer) -> None:
        view, movable, predicted = self._view, placer.movable or {}, self._cluster.predicted
        row_of, shape, plain = view.state.row_of, None, None
        zone = view.index.labels.column(_ZONE).values
        for queued, node in placed:
            pod, row = queued.pod, row_of[node]
            rows = movable.get(pod.uid)
            counted = None if predicted is None else predicted.placed.get(pod.uid)
            if rows is None or counted is None or counted.counts_on != row or counted.weight != 1:
                self._fixed.add(row)
                continue
            if plain is None or plain.rows is not rows or shape_of(pod) != shape:
                plain, shape = self._plain(pod, rows), shape_of(pod)
            if plain.wanted is None or self._has_own_terms(pod):
                self._fixed.add(row)
                continue
            own = plain.points[np.searchsorted(rows, row)]
            open_to = rows[(plain.points >= own) & (zone[rows] == zone[row])]
            self._parts.append(_Part(pod, row, open_to, counted.profile, plain.wanted))

    def question(self) -> Callable[[], Exchange | None] | None:
        parts, fixed, predicted = self._parts, self._fixed, self._cluster.predicted
        self._parts, self._fixed = [], set()
        if predicted is None or len(parts) < self._fewest:
            return None
        load, n_rows = predicted.load, self._view.n_rows
        usable, n_known = self._view.state.alive.copy(), min(n_rows, load.n_nodes)
        usable[:n_known] &= load.known[:n_known]
        usable[n_known:] = False
        usable[list(fixed)] = False
        parts = [replace(part, rows=part.rows[usable[part.rows]]) for part in parts if self._is_there(part)]
        parts = [part for part in parts if usable[part.row]]
        if len(parts) < 2:
            return None
        rows = _nodes(parts, load)
        position = np.full(n_rows, -1, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        kinds = _kinds(parts)
        profiles, profile = np.unique([part.profile for part in parts], return_inverse=True)
        release = Release(
            usage=np.stack([load.usage_of(one) for one in profiles.tolist()]),
            profile=profile,
            requests=_requests(parts, kinds),
            node=position[[part.row for part in parts]],
            allowed=np.stack([np.isin(rows, part.rows, assume_unique=True) for part in parts]),
        )
        filled = FilledNodes(
            share=load.share(rows),
            per_capacity=load.per_capacity(rows),
            free=self._free(rows, kinds),
            point_weights=load.point_weights.copy(),
            alike=load.pods_of(profiles.tolist())[rows],
        )
        return lambda: self._searched(parts, rows, release, filled)

    def carry_out(self, answer: object, until: float) -> Mapping[str, str]:
        """Nothing changes if a node has gone, or has less room than it had."""
        assert isinstance(answer, Exchange)
        names, moved = self._view.state.names, dict[str, str]()
        moves = [(part, row) for part, row in zip(answer.parts, answer.rows, strict=True) if self._is_there(part)]
        if not self._is_room_for(moves):
            return {}
        for part, row in moves:
            profile = self._profiles[part.pod.scheduler_name]
            unreserve(part.pod, names[part.row], profile)
            if reserved(part.pod, names[row], profile).is_success:
                self._cluster.assume(part.pod, names[row], until)
                moved[part.pod.uid] = names[row]
            else:
                reserved(part.pod, names[part.row], profile)  # as it was; binding looks whether the node still is
        return moved

    # Inside

    def _searched(self, parts: Sequence[_Part], rows: Ints, release: Release, nodes: FilledNodes) -> Exchange | None:
        """The pods that go elsewhere; None = none does. Called without the lock."""
        began = self._stopwatch()
        to = rows[rearranged(release, nodes, goes_on=lambda: self._stopwatch() - began < _LONGEST_SECONDS)].tolist()
        moves = [(part, row) for part, row in zip(parts, to, strict=True) if row != part.row]
        return Exchange([part for part, _ in moves], [row for _, row in moves]) if moves else None

    def _is_there(self, part: _Part) -> bool:
        """Whether the pod is assumed where it was placed, still."""
        seat = self._view.state.seat_of.get(part.pod.uid)
        return seat is not None and seat.node == part.row and part.pod.uid in self._cluster.assumed

    def _is_room_for(self, moves: Sequence[tuple[_Part, int]]) -> bool:
        """Whether all of them fit once they are made."""
        if not moves:
            return False
        parts, kinds = [part for part, _ in moves], _kinds([part for part, _ in moves])
        before, after = np.array([part.row for part in parts]), np.array([row for _, row in moves])
        rows, at = np.unique(np.concatenate([before, after]), return_inverse=True)
        requests, more = _requests(parts, kinds), np.zeros((len(rows), 1 + len(kinds)))
        np.add.at(more, at[len(parts) :], requests)
        np.add.at(more, at[: len(parts)], -requests)
        fits = (self._free(rows, kinds) >= more) | (more <= 0)
        return bool(self._view.state.alive[rows].all() and fits.all())

    def _has_own_terms(self, pod: PodInfo) -> bool:
        rooms = self._cluster.rooms
        has_room = len(rooms) > 0 and (rooms.taken_by(pod.uid) is not None or bool(rooms.open_for(pod)))
        return has_room or bool(pod.constraints.spread)

    def _plain(self, pod: PodInfo, rows: Ints) -> _Plain:
        """What pods like this one have in common. rows: that they could go to."""
        profile = self._profiles[pod.scheduler_name]
        policy = profile.policies.choose(pod).policy
        filters = profile.filters_for(policy)
        fit = next(one for one in filters if isinstance(one, NodeResourcesFit))
        wanted = dict(fit.wanted(pod))
        others: list[Filter] = [one for one in filters if one is not fit]
        is_plain = not any(kind in fit.device_class_resources for kind in wanted)
        is_plain &= bool((room_for(pod, self._view, others, rows) >= _NO_END).all())
        points = np.zeros(len(rows), dtype=np.int64)
        for part in parts_beside_allocation(pod, self._view, rows, policy.plugin_weights, spread=False):
            points = points + np.asarray(part.points, dtype=np.int64)
        return _Plain(rows, points, wanted if is_plain else None)

    def _free(self, rows: Ints, kinds: Sequence[str]) -> Floats:
        """Whole units that are not requested, as NodeResourcesFit has it: (n_nodes, 1 + n_kinds), the first of pods."""
        state = self._view.state
        free = np.zeros((len(rows), 1 + len(kinds)))
        free[:, 0] = state.allocatable_units[rows, state.kinds["pods"]] - state.pod_count[rows]
        for at, kind in enumerate(kinds):
            column = state.kinds[kind]
            free[:, 1 + at] = state.allocatable_units[rows, column] - state.requested_units[rows, column]
        return free


@dataclass(frozen=True, slots=True)
class _Plain:
    """What pods of one shape have in common.

    rows   : that they could go to
    points : (len(rows),) of scores that neither requests nor the forecast decide: a pod goes where it has no fewer
    wanted : whole units of what the pod requests; None = the pod takes no part
    """

    rows: Ints
    points: Ints
    wanted: Mapping[str, int] | None


def _nodes(parts: Sequence[_Part], load: PredictedLoad) -> Ints:
    """Rows of the nodes that are looked at, ascending."""
    rows = np.unique(np.concatenate([part.rows for part in parts]))
    if len(rows) <= MOST_NODES:
        return rows
    lowest = rows[np.argpartition(load.highest(CPU, rows), MOST_NODES)[:MOST_NODES]]
    return np.union1d(lowest, [part.row for part in parts])


def _kinds(parts: Sequence[_Part]) -> Sequence[str]:
    return sorted({kind for part in parts for kind in part.wanted})


def _requests(parts: Sequence[_Part], kinds: Sequence[str]) -> Floats:
    """(n_pods, 1 + n_kinds) whole units, the first of pods."""
    return np.array([[1, *(part.wanted.get(kind, 0) for kind in kinds)] for part in parts], dtype=np.float64)
