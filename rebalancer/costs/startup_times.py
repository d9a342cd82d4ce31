"""How long pods of a service take from their node until they are ready, learned from pods that pass by."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from dataclasses import dataclass
from statistics import median
from typing import Final

from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo

_REMEMBERED: Final = 15
"""Pods per service. The median of these follows a new version within a rollout, and no single slow node moves it."""

_LONGEST: Final = 3600.0
"""Seconds. A pod that became ready later was broken and mended, or has lost its readiness in between."""


@dataclass(frozen=True, slots=True)
class StartupTime:
    """Seconds from the binding of a pod until it is ready, by so many pods. n = 0: unknown, and seconds is NaN."""

    seconds: float
    n: int

    def seconds_or(self, default: float) -> float:
        """The seconds, or a default where they are unknown."""
        return self.seconds if self.n else default


UNKNOWN_STARTUP: Final = StartupTime(math.nan, 0)


def startup_seconds(pod: PodInfo) -> float | None:
    """Return the seconds of one pod; None = it is not ready, or does not say since when."""
    if pod.ready is None:
        return None
    begin = pod.created if pod.scheduled is None else pod.scheduled
    seconds = pod.ready - begin
    return seconds if 0 <= seconds <= _LONGEST else None


class StartupTimes:
    """Start-up times of services. Not for several threads at once.

    A pod counts once, by the first time it is seen ready: later its condition says since when it is ready *again*.
    most : services that are remembered, those seen last
    """

    def __init__(self, most: int = 100_000) -> None:
        self._most = max(1, most)
        self._of: OrderedDict[ServiceKey, deque[tuple[str, float]]] = OrderedDict()

    def see(self, pod: PodInfo, service: ServiceKey) -> None:
        """Learn from a pod, as often as it passes by."""
        seconds = startup_seconds(pod)
        if seconds is None:
            return
        seen = self._of.get(service)
        if seen is None:
            while len(self._of) >= self._most:
                self._of.popitem(last=False)
            seen = self._of[service] = deque(maxlen=_REMEMBERED)
        elif any(uid == pod.uid for uid, _ in seen):
            return
        self._of.move_to_end(service)
        seen.append((pod.uid, seconds))

    def of(self, service: ServiceKey) -> StartupTime:
        """What is known of a service."""
        seen = self._of.get(service)
        return StartupTime(median(seconds for _, seconds in seen), len(seen)) if seen else UNKNOWN_STARTUP

    def __len__(self) -> int:
        """Services of which something is known."""
        return len(self._of)
