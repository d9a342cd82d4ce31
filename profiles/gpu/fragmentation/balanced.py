"""Weighted balanced allocation with cards as a resource: a cost per node, for clusters that would rather keep cores,
memory and cards equally used than cards unbroken.

    cost = 100 - balance_change_score        (scorer/scores/weighted_balance.py)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self

import numpy as np

from base.arrays import Floats, Ints
from profiles.gpu.fragmentation.idle_of_nodes import NodeStates, fits
from profiles.gpu.fragmentation.pod_shapes import WHOLE, PodShape
from scorer.scores import MAX_NODE_SCORE
from scorer.scores.weighted_balance import balance_change_score

_WEIGHTS: Final = (1.0, 1.0, 3.0)
"""Of cores, memory and cards: a card is what the cluster has fewest of."""


class Balanced:
    """Implements Judge."""

    def __init__(self, models: Sequence[str], weights: Sequence[float] = _WEIGHTS) -> None:
        """weights: of cores, memory and cards."""
        self._weights, self._models = np.array(weights, dtype=np.float64), models

    def cost(self, shape: PodShape, nodes: NodeStates) -> tuple[Floats, Ints]:
        """See Judge; a shared pod goes to the fullest card that has room."""
        total = np.column_stack([nodes.cpu_total, nodes.memory_total, WHOLE * nodes.n_devices])
        free = np.column_stack([nodes.cpu_free, nodes.memory_free, np.maximum(nodes.free_milli, 0).sum(axis=1)])
        pod = np.array([shape.cpu_milli, shape.memory_mib, shape.asked_milli], dtype=np.float64)
        score = balance_change_score(total - free, pod, total, self._weights)
        room = fits(shape, nodes, self._models)
        return np.where(room, MAX_NODE_SCORE - score, np.inf), _fullest_card(shape, nodes)

    def following(self, nodes: NodeStates) -> Self:
        return self


def _fullest_card(shape: PodShape, nodes: NodeStates) -> Ints:
    """(n_nodes,) -1 = none is to be chosen, or none has room."""
    if not shape.is_shared:
        return np.full(nodes.n_nodes, -1, dtype=np.int64)
    left = np.where(nodes.free_milli >= shape.milli, nodes.free_milli, WHOLE + 1)
    card = left.argmin(axis=1)
    return np.where(left[np.arange(nodes.n_nodes), card] <= WHOLE, card, -1)
