"""Filter StormHeadroom: room that is kept for a storm is not for other jobs.

    StormWatch --keep--> room on some nodes --+--> other jobs of no higher priority use what is left
                                              +--> every pod of the storm that is given a node takes as much of it away
                                              +--> the storm's time is over, or its pods have come: nothing is left

It is a filter of the job profile only: no user waits for a job as for a page, so pods of services are never kept out,
and may take the room. Nor are jobs that have to start before the storm is over, and pods of DaemonSets. A pod of the
storm may go anywhere, the room is only there for it; where it goes elsewhere, room is released in its place. No pod is
evicted for kept room, or to get at it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, NodeRemoved, PodChange, one_by_one
from cluster.tables.columns import request_units
from cluster.tables.state import ClusterState
from kube.objects.counted_pods import waits
from kube.objects.objects import PodInfo
from placement.cluster_events import EventKind
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.pod_annotations import comes_with_node
from placement.filters.rejections import found
from profiles.job.storm.storms import Storm, fitting, free_units, keep_room

_ENDLESS: Final = 2**31 - 1
_REASON: Final = "node(s) kept room for jobs that are expected"
_EARLY: Final = 60.0
"""Seconds by which clocks of masters may differ: pods that are older than the storm are not of it."""


@dataclass(slots=True)
class ReservedHeadroom:
    """A storm that is near or under way.

    release : unix seconds, when nothing is kept for it any more
    units   : whole units that one of its pods requests, by resource name; 'pods' is 1
    on      : for how many of its pods room is kept, by row
    arrived : UIDs of its pods that were given a node
    running : of these, those that sit there still
    free    : the most that was free since it is held, in units by resource name, and in pods of it under '': who else
              fills up the cluster does not get a share of what is left over, and then of that
    """

    storm: Storm
    release: float
    units: dict[str, int]
    on: dict[int, int] = field(default_factory=dict)
    arrived: dict[str, None] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    free: dict[str, int] = field(default_factory=dict)

    @property
    def pods(self) -> int:
        """Pods for which room is kept."""
        return sum(self.on.values())

    def give_up(self, row: int) -> None:
        """Room for one pod less: there if any is kept there, else wherever it was kept last."""
        if not self.on:
            return
        at = row if row in self.on else next(reversed(self.on))
        if self.on[at] == 1:
            del self.on[at]
        else:
            self.on[at] -= 1


class StormHeadroom(NodesAndPodsOnly, PlainFilter):
    """Implements Filter and Follower (attached for no kinds). All under the lock of the tables."""

    name = "StormHeadroom"
    woken_by = frozenset(
        {
            EventKind.NODE_ADDED,
            EventKind.NODE_CHANGED,
            EventKind.POD_LEFT,
            EventKind.UNSCHEDULED_POD_CHANGED,
            EventKind.FORECAST_CHANGED,
            EventKind.TIMEOUT,
        }
    )

    def __init__(
        self,
        state: ClusterState,
        *,
        due_of: Callable[[PodInfo], float] = lambda pod: math.inf,
        group_of: Callable[[PodInfo], str] = lambda pod: "",
        is_virtual: Callable[[int], bool] = lambda row: False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        due_of     : unix seconds, the latest moment at which a pod may start; inf = it does not say
        group_of   : the burst that a pod is of (recurring_starts.py); '' = none
        is_virtual : whether the node of a row is a provider's
        """
        self._state, self._due_of, self._group_of, self._is_virtual = state, due_of, group_of, is_virtual
        self._clock = clock
        self.held: list[ReservedHeadroom] = []
        self._columns: dict[tuple[int, ...], dict[str, Ints]] = {}  # what is kept for some of them

    # For StormWatch

    def hold(self, storm: Storm, release: float) -> ReservedHeadroom:
        """Keep an eye on a storm from now on: its pods count."""
        held = ReservedHeadroom(storm, release, _units(storm))
        self.held.append(held)
        return held

    def update(self, held: ReservedHeadroom, storm: Storm, release: float) -> None:
        """More is known of it by now. What has arrived and where room is kept stays."""
        if storm == held.storm and release == held.release:
            return
        units = _units(storm)
        if units != held.units:
            held.units = units
            held.free.pop("", None)
        held.storm, held.release = storm, release
        self._columns.clear()

    def drop(self, held: ReservedHeadroom) -> None:
        self.held.remove(held)
        self._columns.clear()

    def keep(self, held: ReservedHeadroom, pods: int, eligible: Bools, share: float = 1.0) -> bool:
        """Keep room for `pods` of its pods, as far as there is any. eligible: (n_rows,) nodes they may go to; share: of
        what is free there that may be kept, for all storms together.

        Returns whether some room is kept no more.
        """
        n_rows, before = self._state.n_rows, held.pods
        kept = np.zeros(n_rows, dtype=np.int64)
        for row, n in held.on.items():
            kept[row] = n
        others = [one for one in self.held if one is not held]
        kinds = [kind for kind in held.units if kind in self._state.kinds]
        units = np.array([held.units[kind] for kind in kinds], dtype=np.int64)
        of_others = self._kept(others)
        free = np.stack([self._free(kind, of_others) for kind in kinds], axis=1)
        fits = fitting(free, units)
        if len(kinds) < len(held.units):
            fits[:] = 0  # a resource that no node has ever named
        most = pods if share >= 1 else min(pods, self._most(held, eligible, share, others))
        now = keep_room(fits, eligible, max(0, most), kept)
        held.on = {row: int(now[row]) for row in np.flatnonzero(now).tolist()}
        self._columns.clear()
        return held.pods < before or bool((now < kept).any())

    def reserved(self, kind: str) -> Ints:
        """(n_rows,) whole units that are kept, for all storms together."""
        columns = self._kept(self.held)
        return columns.get(kind, np.zeros(self._state.n_rows, dtype=np.int64))

    # Filter

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Whose room is not for it: pods of other Jobs, or that have to start sooner, may be free to use it."""
        return tuple(map(id, self._against(pod))) if self.held else None

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return True

    def room(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """(n_nodes,) pods like it that are let in before it rejects the next: pods that land give up no room but that
        of their own storm, which is not against them."""
        most = np.full(len(rows), _ENDLESS, dtype=np.int64)
        against = self._against(pod)
        if not against:
            return most
        state, kept = self._state, self._kept(against)
        wanted = {"pods": 1} | {kind: request_units(kind, amount) for kind, amount in pod.requests.items()}
        for kind, amount in wanted.items():
            if amount > 0 and kind in kept and kind in state.kinds:
                fits = self._free(kind, kept)[rows] // amount
                np.minimum(most, np.where(kept[kind][rows] > 0, fits, _ENDLESS), out=most)
        return np.maximum(most, 0)

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Nodes where the pod would fit only into kept room, or not at all."""
        against = self._against(pod)
        if not against:
            return ()
        state, kept = self._state, self._kept(against)
        lacking: Bools = kept["pods"] > np.maximum(self._free("pods", {}) - 1, 0)
        lacking &= kept["pods"] > 0
        for kind, amount in pod.requests.items():
            wanted = request_units(kind, amount)
            if wanted > 0 and kind in kept and kind in state.kinds:
                lacking |= (kept[kind] > 0) & (self._free(kind, kept) < wanted)
        return found(lacking, view, _REASON, preemptible=False)

    # Follower

    def apply(self, changes: Sequence[Change]) -> None:
        """Pods of storms that are given nodes, or have them taken back; rows that mean another node from now on."""
        if not self.held:
            return
        for change in one_by_one(changes):
            if isinstance(change, PodChange):
                self._pod_changed(change)
            elif isinstance(change, NodeRemoved):
                for held in self.held:
                    held.on.pop(change.row, None)
                self._columns.clear()

    def rebuild(self) -> None:
        """Rows may mean other nodes: room is kept anew with the next look at it."""
        for held in self.held:
            held.on.clear()
            held.running &= self._state.seat_of.keys()
        self._columns.clear()

    # Inside

    def _against(self, pod: PodInfo) -> list[ReservedHeadroom]:
        """Return the storms whose room is not for this pod. Their release may be late: the clock is not."""
        if not self.held or comes_with_node(pod):
            return []
        now = self._clock()
        some = [one for one in self.held if one.on and now < one.release and pod.priority <= one.storm.priority]
        if not some:
            return []
        due = self._due_of(pod)
        return [one for one in some if due >= one.release and not self._is_of(pod, one.storm)]

    def _is_of(self, pod: PodInfo, storm: Storm) -> bool:
        if self._state.service_key(pod) in storm.services:
            return True
        return bool(storm.groups) and self._group_of(pod) in storm.groups

    def _pod_changed(self, change: PodChange) -> None:
        pod, after = change.pod, change.after
        if (change.before is None) == (after is None):
            return
        for held in self.held:
            if after is None:
                held.running.discard(pod.uid)
                if pod.uid in held.arrived and waits(pod) and not pod.terminating:
                    del held.arrived[pod.uid]  # it was not bound after all
            elif self._is_new_of(pod, held):
                held.arrived[pod.uid] = None
                held.running.add(pod.uid)
                if not self._is_virtual(after.node):
                    held.give_up(after.node)
                    self._columns.clear()
                return

    def _is_new_of(self, pod: PodInfo, held: ReservedHeadroom) -> bool:
        is_awaited = len(held.arrived) < held.storm.pods and pod.uid not in held.arrived
        return is_awaited and pod.created >= held.storm.start - _EARLY and self._is_of(pod, held.storm)

    def _most(self, held: ReservedHeadroom, eligible: Bools, share: float, others: Sequence[ReservedHeadroom]) -> int:
        """Return for how many pods room may be kept, in addition to what is kept for others."""
        kinds = [kind for kind in held.units if kind in self._state.kinds]
        free = np.stack([np.maximum(self._free(kind, {}), 0) for kind in kinds], axis=1)[eligible]
        fits = fitting(free, np.array([held.units[kind] for kind in kinds], dtype=np.int64))
        now = dict(zip(kinds, free.sum(axis=0).tolist(), strict=True)) | {"": int(fits.sum())}
        held.free = {kind: max(n, held.free.get(kind, 0)) for kind, n in now.items()}
        most = [int(share * held.free[""])]
        for kind in kinds:
            of_others = sum(one.pods * one.units.get(kind, 0) for one in others)
            most.append((int(share * held.free[kind]) - of_others) // held.units[kind])
        return max(0, min(most))

    def _free(self, kind: str, kept: dict[str, Ints]) -> Ints:
        """Return whole units that are free, (n_rows,)."""
        free = free_units(self._state, kind)
        return np.asarray(free - kept[kind] if kind in kept else free)

    def _kept(self, held: Sequence[ReservedHeadroom]) -> dict[str, Ints]:
        """(n_rows,) whole units by resource name."""
        key = (self._state.n_rows, *map(id, held))
        columns = self._columns.get(key)
        if columns is None:
            columns = {}
            for one in held:
                rows = np.fromiter(one.on, dtype=np.int64, count=len(one.on))
                pods = np.fromiter(one.on.values(), dtype=np.int64, count=len(one.on))
                for kind, units in one.units.items():
                    column = columns.setdefault(kind, np.zeros(self._state.n_rows, dtype=np.int64))
                    column[rows] += units * pods
            if len(self._columns) > 16:
                self._columns.clear()
            self._columns[key] = columns
        return columns


def _units(storm: Storm) -> dict[str, int]:
    """Whole units that one of its pods requests, by resource name."""
    units = {kind: request_units(kind, amount) for kind, amount in storm.pod_request.items()}
    return {**{kind: n for kind, n in units.items() if n > 0}, "pods": 1}
