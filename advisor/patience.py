"""How long a pod may wait for its advice, and which pods need not wait for one that cannot come in time. Pure.

nothing was decided for 5 s      pods that were held for 5 s are released: they must not wait for what is wrong
advice is being written          pods wait up to the ceiling; where more are held than can be advised on until then,
                                 those that need advice least are released at once
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from kube.objects.objects import PodInfo

STALLED_SECONDS: Final = 5.0
_SPARE: Final = 2.0
"""A rate that was low for a moment must not cost pods their advice."""


class Patience:
    """Fed with the number of pods advised so far, several times a second.

    ceiling : seconds
    """

    def __init__(self, ceiling: float) -> None:
        self._ceiling = ceiling
        self._seen: deque[tuple[float, int]] = deque()
        self._moved_at, self._n_decided = float("-inf"), 0

    def see(self, now: float, n_advised: int, n_held: int, n_decided: int = 0) -> None:
        """Note what was done until now. now: seconds, monotonic; n_held: pods that wait; n_decided: about so many."""
        decided, self._n_decided = n_decided > self._n_decided, n_decided
        if not n_held or not self._seen or now - self._seen[-1][0] >= STALLED_SECONDS:
            # A pause without pods, or of this whole process, says nothing about how fast deciding is.
            self._seen.clear()
            self._moved_at = now
        elif decided or n_advised > self._seen[-1][1]:
            self._moved_at = now
        self._seen.append((now, n_advised))
        while self._seen[0][0] < now - self._ceiling / 2:
            self._seen.popleft()

    @property
    def is_stalled(self) -> bool:
        """Return whether pods wait and nothing was decided for a while."""
        return bool(self._seen) and self._seen[-1][0] - self._moved_at >= STALLED_SECONDS

    @property
    def seconds(self) -> float:
        """Return for how long a pod may be held."""
        return min(self._ceiling, STALLED_SECONDS) if self.is_stalled else self._ceiling

    @property
    def room(self) -> int | None:
        """Return how many pods may wait; None = as many as come: it is not known yet how fast deciding is.

        The first seconds of a burst say little: tables are read, and pods are held back for each other.
        """
        if len(self._seen) < 2:
            return None
        (began, first), (now, last) = self._seen[0], self._seen[-1]
        if now - began < self._ceiling / 4 or last == first:
            return None
        return int(_SPARE * self._ceiling * (last - first) / (now - began))


def least_in_need(pods: Sequence[PodInfo], n: int) -> Sequence[PodInfo]:
    """Return the n pods for which advice matters least: of low priority, and of those the ones that request little."""
    return sorted(pods, key=lambda pod: (pod.priority, pod.nonzero_requests))[:n]
