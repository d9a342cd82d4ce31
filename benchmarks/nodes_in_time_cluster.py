"""Nodes, pods and placeholder pods, minute by minute, under the rules of kube-scheduler and of an autoscaler.

    new pods --kube-scheduler's scores--> nodes; if none fits, placeholders give way; else the pods wait, the autoscaler
    of nodes sees them in its next scan, and new nodes are there after their start-up

The rules are those of Cluster Autoscaler 1.34 (FAQ.md: scan every 10 s, a node below 50 % of its allocatable whose pods
fit elsewhere is removed after 10 minutes, one that must be drained at a time, none for 10 minutes after a scale-up) or
of Karpenter 1.14 (any node whose pods fit elsewhere, consolidateAfter 1 minute, at most 10 % of the nodes at a time).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import numpy as np

from base.arrays import Bools, Floats
from benchmarks.clusters.placement import native_scores
from benchmarks.nodes_in_time_services import Services

SCAN_SECONDS: Final = 7.0
"""From the top of a minute to the autoscaler's scan, which comes every 10 s."""
MOST_NODES: Final = 400
_EPSILON: Final = 1e-9


class Autoscaler(Enum):
    """Whose rules of scale-down hold."""

    CLUSTER_AUTOSCALER = "cluster-autoscaler"
    KARPENTER = "karpenter"


@dataclass(slots=True)
class Waiting:
    """A pod without a node. created: seconds since the first minute."""

    created: float
    service: int


@dataclass(slots=True)
class Outcome:
    """What became of the cluster.

    waits   : (created, seconds without a node) of every pod that an autoscaler of replicas added
    removed, added : seconds of each node that was consolidated and that was ordered
    """

    waits: list[tuple[float, float]] = field(default_factory=list)
    removed: list[float] = field(default_factory=list)
    added: list[float] = field(default_factory=list)
    node_hours: float = 0.0

    def needed_again(self, seconds: float) -> int:
        """Nodes that were removed and ordered anew within this time; each order answers for one removal, the last."""
        open_removals: list[float] = []
        found = 0
        events = sorted([(at, 0) for at in self.removed] + [(at, 1) for at in self.added])
        for at, is_order in events:
            if not is_order:
                open_removals.append(at)
            elif open_removals and at - open_removals[-1] <= seconds:
                open_removals.pop()
                found += 1
        return found


class Replay:
    """One run.

    chunk       : (2,) what a placeholder requests
    chunks_at   : placeholders wanted, from the minute and the replicas that are there
    marked_at   : rows of nodes that may not be removed, from the minute and this replay; None = no guard
    """

    def __init__(
        self,
        services: Services,
        autoscaler: Autoscaler,
        *,
        chunk: Floats,
        chunks_at: Callable[[int], int] = lambda minute: 0,
        marked_at: Callable[[int, Replay], Collection[int]] | None = None,
        startup_seconds: float = 180.0,
    ) -> None:
        self.services, self._rules, self._chunk = services, autoscaler, chunk
        self._chunks_at, self._marked_at, self._startup = chunks_at, marked_at, startup_seconds
        self.allocatable = services.allocatable
        self.used = np.zeros((MOST_NODES, 2))
        self.placeholders = np.zeros(MOST_NODES, dtype=np.int64)
        self.alive: Bools = np.zeros(MOST_NODES, dtype=np.bool_)
        self._pods: list[list[int]] = [[] for _ in range(len(services.requests))]  # nodes, the youngest last
        self._waiting: list[Waiting] = []
        self._placeholders_waiting = 0
        self._upcoming: list[float] = []  # seconds at which ordered nodes are there
        self._unneeded: dict[int, float] = {}
        self._last_order = -math.inf
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Play all minutes, and return what came of them."""
        n_minutes = self.services.replicas.shape[1]
        for _ in range(self._nodes_at_first()):
            self._add_node()
        for minute in range(n_minutes):
            now = 60.0 * minute
            self._arrivals(now)
            self._follow_load(minute, now)
            self._follow_buffer(self._chunks_at(minute))
            self._order(now + SCAN_SECONDS)
            self._consolidate(minute, now)
            self.outcome.node_hours += (int(self.alive.sum()) + len(self._upcoming)) / 60
        for pod in self._waiting:
            self.outcome.waits.append((pod.created, 60.0 * n_minutes - pod.created))
        return self.outcome

    # Pods

    def _nodes_at_first(self) -> int:
        """Enough for the pods of the first minute, which do not wait."""
        first = self.services.replicas[:, 0] @ self.services.requests
        return math.ceil(1.2 * float((first / self.allocatable).max())) + 1

    def _follow_load(self, minute: int, now: float) -> None:
        wanted = self.services.replicas[:, minute]
        before = self.services.replicas[:, minute - 1] if minute else np.zeros(len(wanted), dtype=np.int64)
        for service in np.flatnonzero(wanted != before).tolist():
            change = int(wanted[service] - before[service])
            for _ in range(-change):
                self._remove_pod(service)
            for _ in range(change):
                self._place_or_wait(Waiting(now, service), now)

    def _remove_pod(self, service: int) -> None:
        """Waiting pods go first, then the youngest (the ranking of the ReplicaSet controller)."""
        for index in range(len(self._waiting) - 1, -1, -1):
            if self._waiting[index].service == service:
                del self._waiting[index]
                return
        self.used[self._pods[service].pop()] -= self.services.requests[service]

    def _place_or_wait(self, pod: Waiting, now: float) -> None:
        node = self._node_for(self.services.requests[pod.service])
        if node is None:
            self._waiting.append(pod)
            return
        self._pods[pod.service].append(node)
        self.used[node] += self.services.requests[pod.service]
        self.outcome.waits.append((pod.created, now - pod.created))

    def _node_for(self, request: Floats) -> int | None:
        """The best node with room, or else the one where the fewest placeholders give way."""
        requested = self.used + self.placeholders[:, None] * self._chunk
        fits = self.alive & (requested + request <= self.allocatable + _EPSILON).all(axis=1)
        if fits.any():
            scores = native_scores(requested, request, np.broadcast_to(self.allocatable, requested.shape))
            return int(np.where(fits, scores, -1.0).argmax())
        missing = np.maximum(requested + request - self.allocatable, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            victims = np.ceil(np.nanmax(missing / self._chunk, axis=1) - _EPSILON)
        possible = self.alive & (victims <= self.placeholders)
        if not possible.any():
            return None
        node = int(np.where(possible, victims, np.inf).argmin())
        self.placeholders[node] -= int(victims[node])
        self._placeholders_waiting += int(victims[node])
        return node

    def _follow_buffer(self, wanted: int) -> None:
        """Placeholders that wait go first; then those on the emptiest nodes."""
        there = int(self.placeholders.sum()) + self._placeholders_waiting
        for _ in range(there - wanted):
            if self._placeholders_waiting:
                self._placeholders_waiting -= 1
            else:
                load = np.where(self.placeholders > 0, self.used[:, 0], np.inf)
                self.placeholders[int(load.argmin())] -= 1
        self._placeholders_waiting += max(wanted - there, 0)
        while self._placeholders_waiting:
            requested = self.used + self.placeholders[:, None] * self._chunk
            fits = self.alive & (requested + self._chunk <= self.allocatable + _EPSILON).all(axis=1)
            if not fits.any():
                break
            scores = native_scores(requested, self._chunk, np.broadcast_to(self.allocatable, requested.shape))
            self.placeholders[int(np.where(fits, scores, -1.0).argmax())] += 1
            self._placeholders_waiting -= 1

    # Nodes

    def _add_node(self) -> None:
        row = int(np.flatnonzero(~self.alive)[0])
        self.alive[row], self.used[row], self.placeholders[row] = True, 0.0, 0

    def _arrivals(self, now: float) -> None:
        """Nodes that are there by now, and the pods that waited for them."""
        while self._upcoming and self._upcoming[0] <= now:
            at = self._upcoming.pop(0)
            self._add_node()
            waiting, self._waiting = self._waiting, []
            for pod in waiting:
                self._place_or_wait(pod, at)

    def _order(self, now: float) -> None:
        """New nodes for what waits and will not fit on those that were ordered."""
        sizes = [self.services.requests[pod.service] for pod in self._waiting]
        sizes.sort(key=lambda size: -float(size[0]))
        sizes += [self._chunk] * self._placeholders_waiting
        if not sizes:
            return
        free = [self.allocatable.copy() for _ in self._upcoming]
        for size in sizes:
            room = next((one for one in free if (one >= size - _EPSILON).all()), None)
            if room is None:
                room = self.allocatable.copy()
                free.append(room)
            room -= size
        for _ in range(len(free) - len(self._upcoming)):
            if int(self.alive.sum()) + len(self._upcoming) >= MOST_NODES:
                raise RuntimeError(f"more than {MOST_NODES} nodes are needed: raise MOST_NODES")
            self._upcoming.append(now + self._startup)
            self.outcome.added.append(now)
            self._last_order = now

    def _consolidate(self, minute: int, now: float) -> None:
        of_ca = self._rules is Autoscaler.CLUSTER_AUTOSCALER
        if self._waiting or self._placeholders_waiting or (of_ca and now - self._last_order < 600):
            self._unneeded.clear()
            return
        requested = self.used + self.placeholders[:, None] * self._chunk
        share = (requested / self.allocatable).max(axis=1)
        candidates = np.flatnonzero(self.alive & (share < (0.5 if of_ca else 2.0)))
        if not len(candidates):
            self._unneeded.clear()
            return
        marked = set(self._marked_at(minute, self)) if self._marked_at is not None else set()
        order = [row for row in candidates[np.argsort(share[candidates], kind="stable")].tolist() if row not in marked]
        unneeded = self._removable(order, requested)
        self._unneeded = {row: self._unneeded.get(row, now) for row in unneeded}
        due = [row for row in unneeded if now - self._unneeded[row] >= (600 if of_ca else 60)]
        empty = [row for row in due if share[row] <= _EPSILON]
        drained = [row for row in due if share[row] > _EPSILON]
        most = 1 if of_ca else max(1, int(0.1 * self.alive.sum()))
        for row in (empty[:10] + drained[:most])[: None if of_ca else most]:
            self._remove_node(row, now)

    def _removable(self, order: list[int], requested: Floats) -> list[int]:
        """Nodes whose pods all fit elsewhere, one after the other."""
        free = np.where(self.alive[:, None], self.allocatable - requested, -1.0)
        found: list[int] = []
        on_node: dict[int, list[Floats]] = {}
        for service, nodes in enumerate(self._pods):
            for node in nodes:
                on_node.setdefault(node, []).append(self.services.requests[service])
        most = 30
        for row in order[:most]:
            trial = free.copy()
            trial[row] = -1.0
            pods = on_node.get(row, []) + [self._chunk] * int(self.placeholders[row])
            for size in sorted(pods, key=lambda one: -float(one[0])):
                fits = (trial >= size - _EPSILON).all(axis=1)
                if not fits.any():
                    break
                trial[int(fits.argmax())] -= size
            else:
                free = trial
                found.append(row)
        return found

    def _remove_node(self, row: int, now: float) -> None:
        """Its pods are created anew and placed; they are none that an autoscaler of replicas added."""
        self.alive[row] = False
        self._unneeded.pop(row, None)
        self.outcome.removed.append(now)
        self._placeholders_waiting += int(self.placeholders[row])
        self.used[row], self.placeholders[row] = 0.0, 0
        for service, nodes in enumerate(self._pods):
            moved = nodes.count(row)
            if moved:
                self._pods[service] = [node for node in nodes if node != row]
                for _ in range(moved):
                    node = self._node_for(self.services.requests[service])
                    if node is None:
                        self._waiting.append(Waiting(now, service))
                    else:
                        self._pods[service].append(node)
                        self.used[node] += self.services.requests[service]
