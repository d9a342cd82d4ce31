"""How long a pod, or a gang as a whole, is left alone after an attempt: 1, 2, 4, 8, 10, 10, ... seconds."""

from __future__ import annotations

from typing import Final

_MOST_DOUBLINGS: Final = 60  # far beyond any longest backoff, and no overflow


def backoff_seconds(attempts: int, *, initial: float, longest: float) -> float:
    """Return the backoff after a number of attempts; none before the first. calculateBackoffDuration in
    backoff_queue.go.
    """
    if attempts < 1:
        return 0.0
    return float(min(initial * 2.0 ** min(attempts - 1, _MOST_DOUBLINGS), longest))
