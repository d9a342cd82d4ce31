"""How often we write: a token bucket, that is a rate per second, and a burst after a quiet time."""

from __future__ import annotations


class TokenBucket:
    """Begins with `burst` tokens and gains `rate` a second, up to `burst`. The caller has the clock and the lock."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._tokens = burst
        self._at: float | None = None

    def take(self, now: float) -> bool:
        """Take one, if there is one."""
        if self._at is not None and now > self._at:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now  # also a clock that was set back: it gives nothing, and counts from there
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
