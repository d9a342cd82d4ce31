"""The nodes of the lowest predicted share, kept in order while one node after the other takes a pod.

Of these the exact cost decides (scorer/scores/predicted_peak_score.py). A pod changes the share of one node, so the
nodes beyond a pool of the lowest hundred need not be looked at until the pool has run dry.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Final

import numpy as np

from forecast.arrays import Floats
from scorer.scores.energy import best_nodes

_POOL: Final = 128


class ShortList:
    """share: (n_nodes,) inf = not to be chosen; kept up to date here."""

    def __init__(self, share: Floats, length: int) -> None:
        self.share, self._length = share, length
        self._pool: list[tuple[float, int]] = []
        self._beyond = (-np.inf, -1)  # from here on nodes are not in the pool

    def best(self) -> list[tuple[float, int]]:
        """Shares and positions, the lowest share first; of equal shares the first position."""
        if len(self._pool) < self._length and self._beyond[0] < np.inf:
            self._fill()
        return self._pool[: self._length]

    def following(self, n_nodes: int) -> list[int]:
        """Positions of so many after the best, as far as they are at hand."""
        return [position for _, position in self._pool[self._length : self._length + n_nodes]]

    def move(self, position: int, share: float) -> None:
        """A node has another share; inf = it is not to be chosen any more."""
        before = (float(self.share[position]), position)
        self.share[position] = share
        at = bisect_left(self._pool, before)
        if at < len(self._pool) and self._pool[at] == before:
            del self._pool[at]
        if (share, position) < self._beyond and share < np.inf:
            insort(self._pool, (share, position))

    def _fill(self) -> None:
        known = np.isfinite(self.share)
        few = best_nodes(self.share, known, _POOL)
        self._pool = sorted(zip(self.share[few].tolist(), few.tolist(), strict=True))
        # All that is lower than the last of the pool is in it.
        self._beyond = self._pool[-1] if len(few) < int(known.sum()) else (np.inf, -1)
        if self._beyond[0] < np.inf:
            last = self._pool[-1]
            self._beyond = (last[0], last[1] + 1)
