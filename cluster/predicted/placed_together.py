"""Pods of a release are placed one after the other, the first ones without knowing what follows. Once all have a node,
moves and exchanges among them mend what that has cost: a bounded local search.

    cost = sum_n sum_r w_r (C[n, r] / mean C_r)^(1/2) * sum_points weight * x^6,    x = predicted load / capacity C

Hot nodes are counted, whatever their size, and a small node feels the burst of a single pod more than a large one. With
nodes weighed by capacity, as for a single pod (cluster.predicted.power_growth), the search gained next to nothing on
Bitbrains nodes of unequal size. Weighed equally, large nodes of the sample came to be too full
(docs/understand/placement.md).

For each pod the nodes it could go to and the pods it could change places with are ranked by the first two derivatives
of the cost, and the best few are computed exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from cluster.predicted.power_growth import MEMORY_LIMIT, RESOURCE_WEIGHTS
from forecast.resources import MEMORY

LOOKS_PER_POD: Final = 16
"""Moves and exchanges of a pod that are computed exactly in a pass over the pods."""

_CAPACITY_POWER: Final = 1 / 2

_SMALLEST_GAIN: Final = 1e-5
"""Of the cost of both nodes: below, rounding decides."""

_ROUNDING: Final = 1e-9
"""Of what a node has free: requests are sums in floating point."""


@dataclass(frozen=True, slots=True)
class Release:
    """Pods that have just been placed, and may still be placed otherwise. Nodes are positions.

    usage    : (n_profiles, n_resources, n_points) of one pod, base units
    profile  : (n_pods,) row of `usage`
    requests : (n_pods, n_requested) 0 = none
    node     : (n_pods,) node that each pod is on
    allowed  : (n_pods, n_nodes) nodes that may take the pod, were there room; None = any may take any
    """

    usage: AnyFloats
    profile: Ints
    requests: Floats
    node: Ints
    allowed: Bools | None = None


@dataclass(frozen=True, slots=True)
class FilledNodes:
    """The nodes with the pods of the release on them.

    share         : (n_nodes, n_resources, n_points) predicted share of capacity, finite
    per_capacity  : (n_nodes, n_resources) 1 / capacity, 0 = no limit. On a node without any, pods neither come nor go
    free          : (n_nodes, n_requested) allocatable that is not requested; below 0 = overcommitted
    point_weights : (n_points,)
    alike         : (n_nodes, n_profiles) pods of each profile on each node, of the release and others. A pod goes to
                    no node that would have more of its profile than the present one has; None = they may crowd
    """

    share: Floats32
    per_capacity: Floats32
    free: Floats
    point_weights: AnyFloats
    alike: AnyFloats | None = None


def rearranged(
    release: Release,
    nodes: FilledNodes,
    *,
    looks: int = LOOKS_PER_POD,
    passes: int = 1,
    goes_on: Callable[[], bool] = lambda: True,
) -> Ints:
    """Node of each pod after moves and exchanges that lower the cost: (n_pods,).

    At most looks * n_pods * passes of them are computed. goes_on: asked before each pod, False = the rest stay

    A node with room keeps it for all that it takes, one that is overcommitted is not more so afterwards, and none comes
    to be predicted over its memory.
    """
    search = _Search(release, nodes)
    order = np.argsort(-search.peaks(), kind="stable")
    for _ in range(passes):
        if not sum(search.improve(pod, looks) for pod in takewhile(lambda _: goes_on(), order.tolist())):
            break
    return search.node


class _Search:
    """Tables of nodes are flat: (n_nodes, n_resources * n_points).

    node  : (n_pods,) as things are
    _cost : (n_nodes,)
    _slope, _bend : (n_nodes, n_profiles) one more pod changes the cost by about slope + bend, one less by -slope + bend
    """

    def __init__(self, release: Release, nodes: FilledNodes) -> None:
        n_nodes, n_points = len(nodes.share), nodes.share.shape[2]
        self.node = np.array(release.node, dtype=np.int64)
        self._profile, self._requests = release.profile, release.requests
        self._allowed = release.allowed
        self._known: Bools = np.asarray((nodes.per_capacity > 0).any(axis=1))
        self._share = nodes.share.reshape(n_nodes, -1).astype(np.float32)  # a copy
        self._usage = np.asarray(release.usage, dtype=np.float32).reshape(len(release.usage), -1)
        self._squared_usage = self._usage**2
        self._per_capacity = np.repeat(nodes.per_capacity.astype(np.float32), n_points, axis=1)
        weights = _node_weights(nodes.per_capacity)[:, :, None] * np.asarray(nodes.point_weights)
        self._weights = weights.reshape(n_nodes, -1).astype(np.float32)
        counted = np.flatnonzero(nodes.point_weights > 0)
        self._memory = MEMORY * n_points + counted
        self._free = np.array(nodes.free, dtype=np.float64)
        self._alike = None if nodes.alike is None else np.array(nodes.alike, dtype=np.float64)
        self._cost = np.zeros(n_nodes)
        self._slope, self._bend = (np.zeros((n_nodes, len(self._usage)), dtype=np.float32) for _ in range(2))
        self._highest_memory = np.zeros(n_nodes, dtype=np.float32)
        self._follow(np.arange(n_nodes))

    def peaks(self) -> Floats:
        """Highest usage of each pod as a share of the mean node: (n_pods,)."""
        per_mean_node = self._per_capacity.mean(axis=0)
        peaks = (self._usage * per_mean_node)[:, (self._weights > 0).any(axis=0)].max(axis=1, initial=0.0)
        return np.asarray(peaks[self._profile], dtype=np.float64)

    def improve(self, pod: int, looks: int) -> bool:
        """Make the best of the moves and exchanges of a pod that are looked at, if it lowers the cost."""
        here = int(self.node[pod])
        if not self._known[here]:
            return False
        estimates = np.concatenate([self._exchanges(pod, here), self._moves(pod, here)])
        few = np.argpartition(estimates, looks)[:looks] if len(estimates) > looks else np.arange(len(estimates))
        few = few[np.isfinite(estimates[few])]
        if not len(few):
            return False
        n_pods = len(self.node)
        is_exchange = few < n_pods
        other = np.where(is_exchange, few, 0)
        there = np.where(is_exchange, self.node[other], few - n_pods)  # (n_few,)
        more = self._usage[self._profile[other]] * is_exchange[:, None].astype(np.float32)
        more -= self._usage[self._profile[pod]]  # (n_few, ...) what comes to be here instead
        share_here: Floats32 = self._share[here] + more * self._per_capacity[here]
        share_there: Floats32 = self._share[there] - more * self._per_capacity[there]
        change: Floats = self._costs(share_here, here) + self._costs(share_there, there)
        change -= self._cost[here] + self._cost[there]
        change[~(self._has_memory(share_here, here) & self._has_memory(share_there, there))] = np.inf
        best = int(change.argmin())
        node = int(there[best])
        # Not ">": shares of millions overflow, and infinite minus infinite is no gain.
        if not change[best] <= -_SMALLEST_GAIN * (self._cost[here] + self._cost[node]):
            return False
        self._share[here], self._share[node] = share_here[best], share_there[best]
        self._reseat(pod, node)
        if is_exchange[best]:
            self._reseat(int(other[best]), here)
        self._follow(np.array([here, node]))
        return True

    def _reseat(self, pod: int, node: int) -> None:
        self._free[self.node[pod]] += self._requests[pod]
        self._free[node] -= self._requests[pod]
        if self._alike is not None:
            self._alike[self.node[pod], self._profile[pod]] -= 1
            self._alike[node, self._profile[pod]] += 1
        self.node[pod] = node

    def _exchanges(self, pod: int, here: int) -> Floats:
        """Estimated change if the pod changes places with another: (n_pods,), infinite = not possible."""
        node, profile, own = self.node, self._profile, self._profile[pod]
        more_here = self._requests - self._requests[pod]  # (n_pods, n_requested)
        ok = (node != here) & (profile != own) & self._known[node]
        ok &= self._has_room(self._free[here], more_here) & self._has_room(self._free[node], -more_here)
        if self._allowed is not None:
            ok &= self._allowed[pod, node] & self._allowed[:, here]
        if self._alike is not None:
            ok &= self._alike[node, own] < self._alike[here, own]
            ok &= self._alike[here, profile] < self._alike[node, profile]
        slope, bend = self._slope, self._bend
        change = slope[here, profile] - slope[here, own] + bend[here, profile] + bend[here, own]
        change += slope[node, own] - slope[node, profile] + bend[node, own] + bend[node, profile]
        return np.where(ok, change, np.inf)

    def _moves(self, pod: int, here: int) -> Floats:
        """The same if it moves to a node: (n_nodes,)."""
        own = self._profile[pod]
        ok: Bools = np.asarray(self._known & self._has_room(self._free, self._requests[pod]))
        ok[here] = False
        if self._allowed is not None:
            ok &= self._allowed[pod]
        if self._alike is not None:
            ok &= self._alike[:, own] < self._alike[here, own]
        change = self._slope[:, own] + self._bend[:, own] - self._slope[here, own] + self._bend[here, own]
        return np.where(ok, change, np.inf)

    @staticmethod
    def _has_room(free: Floats, more: Floats) -> Bools:
        """Whether so much more fits; what asks for no more is never in the way."""
        return np.asarray(((free - more >= -_ROUNDING * np.abs(more)) | (more <= 0)).all(axis=-1))

    def _has_memory(self, share: Floats32, node: int | Ints) -> Bools:
        """Whether the nodes are not predicted to run out of memory, or no more than they were: (n_few,)."""
        highest = share[:, self._memory].max(axis=1, initial=0.0)
        return np.asarray((highest <= MEMORY_LIMIT) | (highest <= self._highest_memory[node]))

    def _costs(self, share: Floats32, nodes: int | Ints) -> Floats:
        """Of nodes with these shares: (n_few,)."""
        squared = np.square(np.maximum(share, np.float32(0)))  # what was taken away may leave less than nothing
        power = squared * squared
        power *= squared
        power *= self._weights[nodes]
        return np.asarray(power.sum(axis=1), dtype=np.float64)

    def _follow(self, nodes: Ints) -> None:
        """These nodes have other pods than before."""
        share = np.maximum(self._share[nodes], np.float32(0))
        squared = share * share
        bend = squared * squared  # x^4
        bend *= self._weights[nodes]
        per_capacity = self._per_capacity[nodes]
        slope = 6 * bend * share * per_capacity
        self._cost[nodes] = (bend * squared).sum(axis=1, dtype=np.float64)
        self._slope[nodes] = slope @ self._usage.T
        self._bend[nodes] = (15 * bend * per_capacity * per_capacity) @ self._squared_usage.T
        self._highest_memory[nodes] = self._share[nodes][:, self._memory].max(axis=1, initial=0.0)


def _node_weights(per_capacity: AnyFloats) -> Floats:
    """(n_nodes, n_resources) w_r * (C / mean C_r)^(1/2); 0 where capacity is no limit."""
    limits = per_capacity > 0
    capacity = np.where(limits, 1 / np.where(limits, per_capacity, 1.0), 0.0).astype(np.float64)
    mean = capacity.sum(axis=0) / np.maximum(limits.sum(axis=0), 1)
    relative = capacity / np.where(mean > 0, mean, 1.0)
    return np.asarray(RESOURCE_WEIGHTS * np.where(limits, relative, 1.0) ** _CAPACITY_POWER * limits)
