"""Nodes from the best to the worst, sorted only as far as somebody looks.

A batch of some dozen pods looks at as many nodes, and a full sort of 5,000 takes as long as placing ten pods.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import Floats, Ints

_CHUNK: Final = 64
"""Nodes that are sorted first; four times as many the next time."""


class BestFirst:
    """Positions by their worth, the highest first, of equal ones the first position."""

    def __init__(self, worth: Floats, positions: Ints) -> None:
        """
        worth     : (n_nodes,) not NaN
        positions : (n,) in ascending order, of the nodes that are meant
        """
        self._cost: Floats = -worth[positions]
        self._rest = positions
        self._chunk = _CHUNK
        self._sorted: Ints = positions[:0]

    def first(self, n: int) -> Ints:
        """Return at least the best `n` in order, or all if there are fewer."""
        while len(self._sorted) < n and len(self._rest):
            self._sort_more()
        return self._sorted

    def _sort_more(self) -> None:
        size = self._chunk
        self._chunk *= 4
        if len(self._rest) <= size:
            chosen, chosen_cost = self._rest, self._cost
            self._rest, self._cost = self._rest[:0], self._cost[:0]
        else:
            # All that equal the last one are in, or which of them come now would be chance.
            is_in = self._cost <= np.partition(self._cost, size - 1)[size - 1]
            chosen, chosen_cost = self._rest[is_in], self._cost[is_in]
            self._rest, self._cost = self._rest[~is_in], self._cost[~is_in]
        self._sorted = np.concatenate([self._sorted, chosen[np.argsort(chosen_cost, kind="stable")]])
