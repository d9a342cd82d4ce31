"""The pause after a training could not be scaled: twice as long each time it fails again.

Only the process that failed knows: the next leader tries at once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from scheduler.queue.backoff import backoff_seconds

_LONGEST_SECONDS: Final = 600.0


class Pauses:
    """By key. Times in unix seconds."""

    def __init__(self, every: float) -> None:
        """every: seconds between looks; the first pause is two of them"""
        self._first = 2 * every
        self._failures: dict[str, tuple[int, float]] = {}

    def failed(self, key: str, now: float) -> None:
        n = self._failures.get(key, (0, now))[0] + 1
        pause = backoff_seconds(n, initial=self._first, longest=max(_LONGEST_SECONDS, self._first))
        self._failures[key] = n, now + pause

    def went_well(self, key: str) -> None:
        """The next failure is the first again."""
        self._failures.pop(key, None)

    def left(self, key: str, now: float) -> float:
        """Seconds until it may be tried again, 0 = at once."""
        left = self._failures.get(key, (0, now))[1] - now
        return left if 0.0 < left <= max(_LONGEST_SECONDS, self._first) else 0.0  # no longer if the clock is set back

    def keep(self, keys: Collection[str]) -> None:
        """The others are gone."""
        for key in self._failures.keys() - set(keys):
            del self._failures[key]
