"""How long one cycle takes at each extension point, and in each plugin.

Extension points are timed in every cycle, plugins in one of ten: a plugin takes microseconds for a small cluster.
Source: pluginMetricsSamplePercent in pkg/scheduler/schedule_one.go of Kubernetes. A plugin looks at all nodes at once,
and at like pods together, so that its time is that of a cycle, not of a node or a pod.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from typing import Generic, TypeVar

from placement.scores.plugin_weights import ScorePart


class Point(Enum):
    """Extension points of a cycle, in the words of kube-scheduler; `prefer` is ours: which nodes come first."""

    FILTER = "filter"
    PREFER = "prefer"
    SCORE = "score"
    RESERVE = "reserve"
    POST_FILTER = "post_filter"


_NOT_TIMED: AbstractContextManager[None] = nullcontext()

Key = TypeVar("Key")


class _Timer(Generic[Key], AbstractContextManager[None]):
    """Adds its seconds to one entry. A class: a generator as context manager costs three times as much."""

    __slots__ = ("_began", "_key", "_seconds", "_stopwatch")

    def __init__(self, seconds: dict[Key, float], key: Key, stopwatch: Callable[[], float]) -> None:
        self._seconds, self._key, self._stopwatch = seconds, key, stopwatch

    def __enter__(self) -> None:
        self._began = self._stopwatch()

    def __exit__(self, *error: object) -> None:
        self._seconds[self._key] += self._stopwatch() - self._began


class CycleTimes:
    """
    points  : seconds at each extension point that was reached
    plugins : seconds of each plugin; empty without `is_sampled`
    """

    def __init__(self, *, is_sampled: bool = False, stopwatch: Callable[[], float] = time.perf_counter) -> None:
        """is_sampled: time plugins, too; stopwatch: seconds from any moment."""
        self.points: dict[Point, float] = defaultdict(float)
        self.plugins: dict[tuple[Point, str], float] = defaultdict(float)
        self._is_sampled, self._stopwatch = is_sampled, stopwatch

    def at(self, point: Point) -> AbstractContextManager[None]:
        """Time what happens at an extension point."""
        return _Timer(self.points, point, self._stopwatch)

    def of(self, point: Point, plugin: str) -> AbstractContextManager[None]:
        """Time a plugin, if this cycle is sampled."""
        return _Timer(self.plugins, (point, plugin), self._stopwatch) if self._is_sampled else _NOT_TIMED

    def filters(self) -> Callable[[str, float], None] | None:
        """What notes the seconds of a filter; None = this cycle is not sampled."""
        return self._note_filter if self._is_sampled else None

    def each(self, parts: Iterable[ScorePart]) -> Iterable[ScorePart]:
        """The same parts of a sum; each is timed while it is made."""
        return self._each(parts) if self._is_sampled else parts

    # Inside

    def _note_filter(self, plugin: str, seconds: float) -> None:
        self.plugins[Point.FILTER, plugin] += seconds

    def _each(self, parts: Iterable[ScorePart]) -> Iterator[ScorePart]:
        began = self._stopwatch()
        for part in parts:
            self.plugins[Point.SCORE, part.name] += self._stopwatch() - began
            yield part
            began = self._stopwatch()
