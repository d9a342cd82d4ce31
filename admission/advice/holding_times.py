"""Which pods our gate alone holds, and for how long, as the watch of unbound pods shows it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from placement.held_pods import HeldPod

_PAUSE_SECONDS: Final = 1.0
"""After a vain attempt to release a pod: one that cannot be released must not keep the API server busy."""


@dataclass(slots=True)
class _Held:
    """
    since      : when our gate was seen to be the only one
    tries      : how often the pod was to be released
    is_claimed : its gate is being removed
    again_at   : before that it is left alone
    """

    pod: HeldPod
    since: float
    tries: int = 0
    is_claimed: bool = False
    again_at: float = float("-inf")


class HoldingTimes:
    """Implements ResourceSink. For any thread.

    clock : seconds, monotonic, for pods that are seen to come
    wall  : unix seconds, for those that came unseen, before a list: when they were created is all that is known of
            them. Where the clocks of the machines differ they are released earlier or later
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._clock, self._wall = clock, wall
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}

    # Implements ResourceSink

    def replace(self, objects: Sequence[HeldPod]) -> None:
        """These are all pods without a node."""
        with self._lock:
            before, self._held = self._held, {}
            now, wall = self._clock(), self._wall()
            for pod in objects:
                if pod.waits_for_us_alone:
                    known = before.get(pod.uid)
                    self._held[pod.uid] = known or _Held(pod, now - max(0.0, wall - pod.created))
                    self._held[pod.uid].pod = pod

    def put(self, obj: HeldPod) -> None:
        """A pod is new or has changed."""
        with self._lock:
            if not obj.waits_for_us_alone:
                self._held.pop(obj.uid, None)
            elif (known := self._held.get(obj.uid)) is not None:
                known.pod = obj
            else:
                self._held[obj.uid] = _Held(obj, self._clock())

    def delete(self, obj: HeldPod) -> None:
        """A pod is bound, or gone."""
        with self._lock:
            self._held.pop(obj.uid, None)

    # What is asked

    def take(self, seconds: float, *, is_left: Callable[[HeldPod], bool] = lambda pod: False) -> list[HeldPod]:
        """Return the pods that have been held for so long, those that have waited longest first. The caller removes
        their gates, and says `tried` in any case.

        After two vain attempts a pod comes without its version: one that somebody changes all the time is released,
        too. is_left : whether a pod is not to be taken
        """
        with self._lock:
            now = self._clock()
            due = [
                one
                for one in self._held.values()
                if now - one.since >= seconds and not one.is_claimed and now >= one.again_at
            ]
            due = sorted((one for one in due if not is_left(one.pod)), key=lambda one: one.since)
            for one in due:
                one.tries, one.is_claimed = one.tries + 1, True
            return [one.pod if one.tries <= 2 else replace(one.pod, version="") for one in due]

    def tried(self, uid: str) -> None:
        """The attempt at a pod that was taken has ended. One that is still held is left alone for a second."""
        with self._lock:
            if (one := self._held.get(uid)) is not None:
                one.is_claimed, one.again_at = False, self._clock() + _PAUSE_SECONDS

    def has(self, uid: str) -> bool:
        """Return whether the pod is still held, as far as is known."""
        return uid in self._held

    def longest(self, *, is_left: Callable[[HeldPod], bool] = lambda pod: False) -> float:
        """Return the seconds for which the pod that has waited longest has been held; 0 = none is."""
        with self._lock:
            now = self._clock()
            return max((now - one.since for one in self._held.values() if not is_left(one.pod)), default=0.0)

    def __len__(self) -> int:
        return len(self._held)
