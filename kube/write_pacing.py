"""How often we write: a token bucket (a rate per second, and a burst after a quiet time), and when the status of an
object may be written again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from kube.client.api_answer import NO_ANSWER, NOT_SENT

_AGAIN_SECONDS: Final = 30.0
"""Until a status is written again that the object does not show: another writer, or a definition without the field, may
have removed it."""

_HOPELESS: Final = frozenset({NO_ANSWER, NOT_SENT, 401, 429})


def is_hopeless(status: int) -> bool:
    """Whether the next patch would meet the same answer, so that the rest has to wait."""
    return status in _HOPELESS or status >= 500


Wanted = TypeVar("Wanted")


@dataclass(frozen=True, slots=True)
class _Sent(Generic[Wanted]):
    uid: str
    wanted: Wanted
    at: float


class StatusPacing(Generic[Wanted]):
    """What was last sent of each object, for one thread.

    each_seconds : between two writes to one object at least
    """

    def __init__(self, each_seconds: float = 2.0) -> None:
        self._each_seconds = each_seconds
        self._sent: dict[str, _Sent[Wanted]] = {}

    def may_send(self, key: str, wanted: Wanted, now: float, *, uid: str = "") -> bool:
        """Whether the pause since the last write is over. A new object of this name, or a clock set back, ends it."""
        before = self._sent.get(key)
        if before is None or before.uid != uid:
            return True
        pause = _AGAIN_SECONDS if before.wanted == wanted else self._each_seconds
        return not 0 <= now - before.at < pause

    def sent_at(self, key: str) -> float:
        """Time of the last write; 0.0 = never."""
        before = self._sent.get(key)
        return 0.0 if before is None else before.at

    def sent(self, key: str, wanted: Wanted, now: float, *, uid: str = "") -> None:
        self._sent[key] = _Sent(uid, wanted, now)

    def forget(self, key: str) -> None:
        """End the pause: the write did not reach the object, or the object is gone."""
        self._sent.pop(key, None)

    def keep(self, keys: Collection[str]) -> None:
        """Forget all other objects."""
        self._sent = {key: sent for key, sent in self._sent.items() if key in keys}


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
