"""Weighted fair turns between queues that have something to place: start-time fair queueing, counted in pods.

Each lane has a clock of its own, which its pods move on by 1 / weight each; the lane furthest behind goes next. A new
lane starts where the others are: no lane saves up turns. Goyal, Vin & Cheng, SIGCOMM 1996.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

_FEW: Final = 64


class Lanes:
    """weight: of a lane, above 0."""

    def __init__(self, weight: Callable[[str], float]) -> None:
        self._weight = weight
        self._clocks: dict[str, float] = {}
        self._now = 0.0  # where the lane was whose turn was last

    def next(self, waiting: Collection[str]) -> str:
        """Of these lanes, one or more; equal ones by name."""
        clocks, now = self._clocks, self._now
        chosen = min(waiting, key=lambda lane: (max(clocks.get(lane, now), now), lane))
        self._now = max(clocks.get(chosen, now), now)
        if len(clocks) > len(waiting) + _FEW:
            self._clocks = {lane: clock for lane, clock in clocks.items() if clock > self._now}
        return chosen

    def taken(self, lane: str, n_pods: int) -> None:
        """Count pods of the lane that have had their turn; below 0: they have not after all."""
        self._clocks[lane] = max(self._clocks.get(lane, 0.0), self._now) + n_pods / self._weight(lane)
