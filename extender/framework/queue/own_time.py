"""The queue's own time: follows a clock, but never goes back, so that nobody waits longer for a clock set back."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["OwnTime"]


class OwnTime:
    """Seconds that never go back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """clock: unix seconds."""
        self._clock = clock
        self._latest = clock()
        self._set_back = 0.0

    def now(self) -> float:
        """Own seconds."""
        now = self._clock() + self._set_back
        if now < self._latest:
            self._set_back += self._latest - now
            now = self._latest
        self._latest = now
        return now

    def unix(self, own: float) -> float:
        """An own time as the clock counts now."""
        return own - self._set_back
