"""How many bindings are under way at once: as many as the API server stands; and when the loop pauses because bindings
are behind.

Additive increase, multiplicative decrease, as TCP shares a line (Chiu & Jain 1989): a 429 takes a quarter off, at most
once a second, since all that were under way then get the same answer; every binding that succeeds adds a fraction, one
whole after as many as are under way.
"""

from __future__ import annotations

from collections.abc import Callable

_LEFT_AFTER_THROTTLING = 0.75
_AT_MOST_EVERY_SECONDS = 1.0


class InFlightLimit:
    """For the thread of the event loop. clock: seconds, monotonic."""

    def __init__(self, most: int, *, least: int = 4, clock: Callable[[], float]) -> None:
        self._most, self._least, self._clock = float(most), float(min(least, most)), clock
        self._now = float(most)
        self._throttled_at: float | None = None
        self._throttled = 0

    @property
    def now(self) -> int:
        """Return how many bindings may be under way."""
        return int(self._now)

    @property
    def throttled(self) -> int:
        """429s so far."""
        return self._throttled

    def was_throttled(self) -> None:
        """The API server said 429."""
        self._throttled += 1
        at = self._clock()
        if self._throttled_at is None or at - self._throttled_at >= _AT_MOST_EVERY_SECONDS:
            self._throttled_at = at
            self._now = max(self._least, self._now * _LEFT_AFTER_THROTTLING)

    def went_well(self) -> None:
        """A binding was answered as it should be."""
        self._now = min(self._most, self._now + 1.0 / self._now)


class Backpressure:
    """Begins at `most` bindings and ends at half of it: who decides later knows more, and many pods at once take less
    time than few at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._is_on = False

    def is_on(self, unfinished: int) -> bool:
        """Return whether nothing more is to be decided. unfinished: bindings that wait or are under way"""
        self._is_on = unfinished >= (-(-self._most // 2) if self._is_on else self._most)
        return self._is_on
