"""A simulated cluster that places pods one by one, each where it costs least, and never moves or refuses one that fits.

What a shape costs is kept for every node and computed anew for the nodes that changed since the shape came last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from base.arrays import Floats, Ints
from benchmarks.gpu_packing_policies import CostOf, kind_of
from profiles.gpu.fragmentation.idle_of_nodes import NodeStates, fits
from profiles.gpu.fragmentation.pod_shapes import WHOLE, PodShape


@dataclass(slots=True)
class _Costs:
    cost: Floats
    device: Ints
    n_placed: int  # so many pods had been placed when these were right


class Cluster:
    """All idle at first. nodes: changed by `place`, in the order in which equal ones are preferred."""

    def __init__(
        self, nodes: NodeStates, models: Sequence[str], cost_of: CostOf, lots: np.random.Generator | None
    ) -> None:
        """lots: which of the nodes of equal cost is drawn; None = the first of them."""
        self.nodes = replace(
            nodes,
            cpu_free=nodes.cpu_free.copy(),
            memory_free=nodes.memory_free.copy(),
            free_milli=nodes.free_milli.copy(),
        )
        self._models, self._cost_of, self._lots = models, cost_of, lots
        self._kinds: Ints = np.zeros((nodes.n_nodes, 2 + nodes.free_milli.shape[1]), dtype=np.int64)
        self._rows: list[int] = []  # of the pods placed
        self._costs: dict[PodShape, _Costs] = {}

    def decide_by(self, cost_of: CostOf) -> None:
        """From now on."""
        self._cost_of, self._costs = cost_of, {}

    def place(self, shape: PodShape) -> bool:
        """Whether any node had room for it."""
        known = self._known(shape)
        row = int(known.cost.argmin())
        if np.isinf(known.cost[row]):
            return False
        if self._lots is not None:
            row = int(self._lots.choice(np.flatnonzero(known.cost == known.cost[row])))
        nodes = self.nodes
        nodes.cpu_free[row] -= shape.cpu_milli
        nodes.memory_free[row] -= shape.memory_mib
        if shape.is_shared:
            nodes.free_milli[row, known.device[row]] -= shape.milli
        elif shape.count:
            nodes.free_milli[row, np.flatnonzero(nodes.free_milli[row] == WHOLE)[: shape.count]] = 0
        self._kinds[row, kind_of(shape)] += 1
        self._rows.append(row)
        return True

    def _known(self, shape: PodShape) -> _Costs:
        known = self._costs.get(shape)
        if known is None:
            n_nodes = self.nodes.n_nodes
            known = self._costs[shape] = _Costs(np.full(n_nodes, np.inf), np.full(n_nodes, -1, dtype=np.int64), 0)
            self._compute(shape, known, np.arange(n_nodes))
        elif known.n_placed < len(self._rows):
            self._compute(shape, known, np.array(sorted(set(self._rows[known.n_placed :])), dtype=np.int64))
        known.n_placed = len(self._rows)
        return known

    def _compute(self, shape: PodShape, known: _Costs, rows: Ints) -> None:
        changed = self.nodes.take(rows)
        room = fits(shape, changed, self._models)
        known.cost[rows[~room]] = np.inf
        if room.any():
            some = rows[room]
            known.cost[some], known.device[some] = self._cost_of(
                shape, changed.take(np.flatnonzero(room)), self._kinds[some]
            )


def allocation_at(percents: Iterable[int], arrived: Floats, allocated: Floats) -> dict[int, float]:
    """Percent allocated at each percent arrived: the mean over the arrivals that round to it (merge_alloc_discrete.py),
    or at the nearest arrival, where none does.

    arrived, allocated : (n_pods,) percent of the cards, after each arrival
    """
    rounded = np.round(arrived)
    found = {}
    for percent in percents:
        at = rounded == percent
        found[percent] = float(allocated[at].mean() if at.any() else allocated[np.abs(arrived - percent).argmin()])
    return found
