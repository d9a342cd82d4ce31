"""Where a pod would do the least harm: a rough look at all nodes, an exact one at the best of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from base.arrays import Bools, Floats, Floats32, Ints
from cluster.predicted.power_growth import MEMORY_LIMIT
from forecast.resources import MEMORY
from rebalancer.planning.draft_tables import PlanTables
from rebalancer.planning.heat import cool_share, node_heat
from rebalancer.rebalance_settings import PlanningOptions

BLOCKS = 24
"""Parts of the horizon of which the rough look knows the highest bound."""


@dataclass(frozen=True, slots=True)
class Target:
    """A node for a pod, and the heat that the pod brings there."""

    node: int
    cost: float


@dataclass(slots=True)
class _Rough:
    values: Floats32
    seen: int


@dataclass(slots=True)
class TargetFinder:
    """Finds targets by the present tables. Rough values are kept by profile; nodes that changed are computed anew."""

    tables: PlanTables
    options: PlanningOptions
    refused: set[tuple[int, int]] = field(default_factory=set)
    """Pods and targets that are out of the question, whatever the tables say."""
    _cool: float = field(init=False)
    _bounds: Floats32 = field(init=False)
    _inverse: Floats32 = field(init=False)
    _starts: Ints = field(init=False)
    _seen: int = 0
    _rough: dict[int, _Rough] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cool = cool_share(self.tables.problem.hot)
        n_slots = self.tables.share.shape[2]
        self._starts = np.unique(np.linspace(0, n_slots, min(BLOCKS, n_slots), endpoint=False).astype(np.int64))
        n_nodes, n_counted, _ = self.tables.share.shape
        # Nodes last: what is computed for all nodes then runs along them.
        self._bounds = np.empty((n_counted, len(self._starts), n_nodes), dtype=np.float32)
        self._inverse = np.ascontiguousarray(self.tables.inverse.T)
        for start in range(0, n_nodes, 512):
            self._look_at(np.arange(start, min(start + 512, n_nodes)))

    def best(self, pod: int) -> Target | None:
        """Return the open target with the least cost; of those that stay cool, the coolest. None if there is none."""
        candidates = np.flatnonzero(self.open_targets(pod))
        if not len(candidates):
            return None
        rough = self.rough(pod)[candidates]
        first = int(np.argmin(rough))
        if rough[first] <= self._cool:
            return Target(int(candidates[first]), 0.0)
        candidates = nearest(candidates, rough, self.options.targets_looked_at)
        costs = self.costs(pod, candidates)
        first = int(np.argmin(costs))
        return Target(int(candidates[first]), float(costs[first])) if np.isfinite(costs[first]) else None

    def open_targets(self, pod: int) -> Bools:
        """(n_nodes,) see PlanTables.open_targets; without what is refused."""
        return self.without_refused(pod, self.tables.open_targets(pod))

    def without_refused(self, pod: int, nodes: Bools) -> Bools:
        """Return the mask of nodes without those that are refused for the pod. Changes it in place."""
        for one, target in self.refused:
            if one == pod:
                nodes[target] = False
        return nodes

    def costs(self, pod: int, nodes: Ints) -> Floats:
        """(n,) heat that the pod adds to each of the nodes; infinite above the ceiling."""
        tables = self.tables
        added = tables.usage(pod) * tables.inverse[nodes][:, :, None]  # (n, n_counted, n_slots)
        added += tables.share[nodes]
        costs = (
            node_heat(added[:, : tables.n_hot], tables.margin[nodes, : tables.n_hot], tables.problem.hot)
            - tables.heat[nodes]
        )
        costs[(added > tables.ceiling[nodes]).any(axis=(1, 2))] = np.inf
        return np.asarray(costs)

    def rough(self, pod: int) -> Floats32:
        """(n_nodes,) the highest bound with the pod up to `cool_share`, which costs nothing. Above, more is worse.

        By the highest bound of each part of the horizon, so never less than it is.
        """
        tables = self.tables
        if self._seen < len(tables.log):
            self._look_at(np.unique(tables.log[self._seen :]))
            self._seen = len(tables.log)
        profile = int(tables.problem.pods.profile[pod])
        known = self._rough.get(profile)
        if known is None:
            known = self._rough[profile] = _Rough(self._values(pod, slice(None)), self._seen)
        elif known.seen < self._seen:
            rows = np.unique(tables.log[known.seen :])
            known.values[rows] = self._values(pod, rows)
            known.seen = self._seen
        return known.values

    def _values(self, pod: int, rows: Ints | slice) -> Floats32:
        tables = self.tables
        highest = np.maximum.reduceat(tables.usage(pod), self._starts, axis=1)  # (n_counted, n_blocks)
        after = self._after(highest[0], 0, rows)  # (n_blocks, n)
        for r in range(1, len(highest)):
            np.maximum(after, self._after(highest[r], r, rows), out=after)
        worst = after.max(axis=0)
        after -= self._cool
        over = np.maximum(after, 0, out=after).sum(axis=0)
        return np.asarray(np.where(worst <= self._cool, worst, 1 + over), dtype=np.float32)

    def _after(self, highest: Floats32, resource: int, rows: Ints | slice) -> Floats32:
        added = highest[:, None] * self._inverse[resource, rows]
        added += self._bounds[resource][:, rows]
        return np.asarray(added)

    def _look_at(self, rows: Ints) -> None:
        tables = self.tables
        bounds = np.maximum.reduceat(tables.share[rows] + tables.margin[rows], self._starts, axis=2)
        if MEMORY in tables.resources:
            bounds[:, -1] -= MEMORY_LIMIT - self._cool  # so that one limit holds for all
        self._bounds[:, :, rows] = bounds.transpose(1, 2, 0)


def nearest(candidates: Ints, values: Floats32, n: int) -> Ints:
    """Return the n candidates with the least values, in the order of their rows."""
    if len(candidates) <= n:
        return candidates
    return np.asarray(np.sort(candidates[np.argpartition(values, n)[:n]]))
