"""Own time of a table or queue: what a steady clock says has passed. A wall clock that jumps changes no wait."""

from __future__ import annotations

from collections.abc import Callable


class MonotonicTime:
    """Seconds that never go back. They begin as unix seconds, and leave those when the wall clock jumps."""

    def __init__(self, clock: Callable[[], float], steady: Callable[[], float] | None = None) -> None:
        """clock: unix seconds; steady: seconds that pass evenly, None = those of `clock`, unless it goes back."""
        self._clock, self._steady = clock, steady or clock
        self._own, self._seen = clock(), self._steady()

    def now(self) -> float:
        """Own seconds."""
        seen = self._steady()
        self._own, self._seen = self._own + max(seen - self._seen, 0.0), seen
        return self._own

    def own(self, unix: float) -> float:
        """The own time of a moment as the wall clock counts now."""
        return unix - self.unix(0.0)

    def unix(self, own: float) -> float:
        """An own time as the wall clock counts now."""
        return own - self.now() + self._clock()
