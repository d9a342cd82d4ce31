"""kube-scheduler's scores of requests once one, two, ... pods of a batch have landed on a node.

Worked out for many nodes at once, which costs little more than for one; but not for all of them as long as only few
are near enough to the best to get there.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from forecast.arrays import Bools, Ints
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.scores.default_scores import allocation_scores
from placement.scores.plugin_weights import PluginWeights

_FIRST: Final = 128
"""Nodes looked at when a first one gets to another number of pods; four times as many the next time."""


class AllocationLevels:
    """Nodes are positions in `rows`. initial: (n_nodes,) without any pod of the batch."""

    def __init__(self, pod: PodInfo, view: ClusterView, rows: Ints, weights: PluginWeights) -> None:
        self._pod, self._view, self._rows, self._weights = pod, view, rows, weights
        self.initial = allocation_scores(pod, view, rows, weights)
        self._likely = np.arange(len(rows))
        self._levels: dict[int, tuple[Ints, Bools, list[int]]] = {}  # scores, where they are known, how many next

    def expect(self, order: Ints) -> None:
        """(n_nodes,) positions, those that will get pods soonest first."""
        self._likely = order

    def at(self, landed: int, position: int) -> int:
        """The score of a node with so many pods, 1 or more."""
        level = self._levels.get(landed)
        if level is None:
            n = len(self._rows)
            level = self._levels[landed] = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool), [_FIRST]
        scores, known, size = level
        if not known[position]:
            next_ones = self._likely[~known[self._likely]][: size[0]]
            size[0] *= 4
            self._work_out(np.append(next_ones, position), landed, scores, known)
        return int(scores[position])

    def _work_out(self, positions: Ints, landed: int, scores: Ints, known: Bools) -> None:
        rows = self._rows[positions]
        scores[positions] = allocation_scores(self._pod, self._view, rows, self._weights, landed=landed)
        known[positions] = True
