"""The figures of each day: memory of our processes, and how long they took for a pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from testing.soak.figures import Histogram, histogram

if TYPE_CHECKING:
    from testing.soak.world import World

_STAGE: Final = "forecast_scheduling_duration_seconds"
_TOOK: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "scorer": (_STAGE, {"stage": "score"}),
    "extender": (_STAGE, {"stage": "prioritize"}),
    "schedule-0": (_STAGE, {"stage": "cycle"}),
    "schedule-1": (_STAGE, {"stage": "cycle"}),
}
"""What is asked of each process: the work on a pod that is in memory, without waiting for others."""


class Ledger:
    """took: by process and day, seconds of all that it did that day."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._so_far = {name: self._read(name) for name in _TOOK}
        self.took: dict[str, dict[int, Histogram]] = {name: {} for name in _TOOK}

    def close(self, day: int) -> None:
        """At its end."""
        for name in _TOOK:
            now = self._read(name)
            self.took[name][day] = now.since(self._so_far[name])
            self._so_far[name] = now

    def memory(self, name: str, days: Iterable[int]) -> list[float]:
        """Bytes in use, median of each day."""
        return self._world.watchman.memory_of_days(name, days)

    def latency(self, name: str, days: Iterable[int]) -> list[float]:
        """Median seconds of each day; nothing for a replica that only waits for its turn."""
        found = [self.took[name][day] for day in days]
        return [one.quantile(0.5) for one in found] if all(one.n for one in found) else []

    def _read(self, name: str) -> Histogram:
        metric, labels = _TOOK[name]
        return histogram(self._world.metrics(name), metric, **labels)
