"""The parts of a look: how long each took, and how far the whole is, from which a terminal says how much is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from base.progress import Progress

_USUAL: Final = {"read": 40, "learn": 20, "cluster": 5, "recorded days": 15, "capacity": 20}
"""Per cent of the time of a look at 100 nodes, in their order."""

_WHOLE: Final = "per cent of the look"
_READ: Final = "read Prometheus"
_STAGE_OF: Final = {"read": _READ, "capacity": "capacity"}
"""Of the parts that say how far they are, the stage that does."""


class LookParts:
    """seconds: that each part took, by name; only those that are over"""

    def __init__(self, progress: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress, self._clock = progress, clock
        self._name = "read"
        self.seconds: dict[str, float] = {}
        progress(_WHOLE, 0, 100)

    def progress(self, stage: str, done: int, total: int) -> None:
        """Report a stage of the part under way. Implements base.progress.Progress."""
        self._progress(stage, done, total)
        if _STAGE_OF.get(self._name) == stage and total:
            self._tell(done / total)
            if stage == _READ and done >= total:  # `train` reads and learns in one
                self._begin("learn")

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Measure the block; one of `_USUAL` also counts as so much of the whole."""
        started = self._clock()
        if name in _USUAL:
            self._begin(name)
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + self._clock() - started

    def end(self, stages: Mapping[str, float]) -> Mapping[str, float]:
        """Say that the look is over; return the seconds by part, after those of `train`."""
        self._progress(_WHOLE, 100, 100)
        return {**stages, **self.seconds}

    def _begin(self, name: str) -> None:
        self._name = name
        self._tell(0.0)

    def _tell(self, share: float) -> None:
        names = list(_USUAL)
        before = sum(_USUAL[name] for name in names[: names.index(self._name)])
        self._progress(_WHOLE, min(round(before + share * _USUAL[self._name]), 99), 100)
