"""A lock around a value that any thread may take again while it holds it. It knows how long it is waited for and held.

Who holds it longer than a tenth of a second is logged by name: all others wait for that long.
"""

from __future__ import annotations

import logging
import sys
import threading
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from inspect import CO_GENERATOR
from time import perf_counter
from types import FrameType
from typing import Final, Generic, TypeVar

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

logger = logging.getLogger(__name__)

T = TypeVar("T")

_BOUNDS: Final = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)
_SLOW_SECONDS: Final = 0.1
_QUIET_SECONDS: Final = 60.0
"""Without a further line about the same holder."""


@dataclass(slots=True)
class LockTimes:
    """How often a time was up to each bound, the last one without a bound, and the sum in seconds.

    Written under the lock. Read without it, since a holder that hangs must not hold up /metrics.
    """

    n: list[int] = field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """There was one more."""
        self.n[bisect_left(_BOUNDS, seconds)] += 1
        self.seconds += seconds


class TimedLock(Generic[T]):
    """Context manager that yields the value.

    waited : of those that found the lock taken
    held   : from when it was taken until the same thread had given it back as often
    """

    def __init__(self, value: T) -> None:
        self._value, self._lock = value, threading.RLock()
        self._depth, self._since = 0, 0.0
        self._named: dict[str, float] = {}
        self.waited, self.held = LockTimes(), LockTimes()

    def __enter__(self) -> T:
        if not self._lock.acquire(blocking=False):
            began = perf_counter()
            self._lock.acquire()
            self.waited.add(perf_counter() - began)
        if not self._depth:
            self._since = perf_counter()
        self._depth += 1
        return self._value

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self._depth:
            self._lock.release()
            return
        now = perf_counter()
        seconds, holder = now - self._since, ""
        self.held.add(seconds)
        try:
            if seconds > _SLOW_SECONDS:
                holder = _holder(sys._getframe(1))
                if now - self._named.get(holder, -_QUIET_SECONDS) < _QUIET_SECONDS:
                    holder = ""
                else:
                    self._named[holder] = now
        finally:
            self._lock.release()
        if holder:
            fields = {"by": holder, "in_thread": threading.current_thread().name}
            logger.info("the tables were held for %.2f s: others waited", seconds, extra=fields)


def _holder(frame: FrameType) -> str:
    """The function with the `with` statement; a generator holds the lock for its caller."""
    here: FrameType | None = frame
    while here is not None and (here.f_code.co_flags & CO_GENERATOR or here.f_globals["__name__"] == "contextlib"):
        here = here.f_back
    found = here or frame
    return f"{found.f_globals['__name__']}.{found.f_code.co_qualname}"


class LockCollector(Collector):
    """Reads the figures at each scrape."""

    def __init__(self, lock: TimedLock[T]) -> None:
        self._lock = lock

    def collect(self) -> Iterator[HistogramMetricFamily]:
        yield _histogram(
            "forecast_tables_lock_wait_seconds",
            "Time for which a thread waited for the lock of the tables, where another one had it.",
            self._lock.waited,
        )
        yield _histogram(
            "forecast_tables_lock_held_seconds",
            "Time for which a thread had the lock of the tables.",
            self._lock.held,
        )


def _histogram(name: str, text: str, times: LockTimes) -> HistogramMetricFamily:
    so_far, buckets = 0, []
    for bound, n in zip((*map(str, _BOUNDS), "+Inf"), tuple(times.n), strict=True):
        so_far += n
        buckets.append((bound, float(so_far)))
    return HistogramMetricFamily(name, text, buckets=buckets, sum_value=times.seconds)
