"""NodeResourceTopologies from the watch, put by for whoever holds the lock of the tables: the watch never waits."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from placement.topology.node_zones import NodeZones


@dataclass(frozen=True, slots=True)
class News:
    """
    objects : new or changed
    at      : unix seconds when they came
    is_all  : these are all there are
    gone    : name of a node whose object is gone, '' = none
    """

    objects: tuple[NodeZones, ...]
    at: float
    is_all: bool = False
    gone: str = ""


class ZoneNews:
    """Implements ResourceSink for one thread; `take` is for another."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._news: deque[News] = deque()

    def replace(self, objects: Sequence[NodeZones]) -> None:
        """These are all."""
        self._news.append(News(tuple(objects), self._clock(), is_all=True))

    def put(self, obj: NodeZones) -> None:
        """One is new or has changed."""
        self._news.append(News((obj,), self._clock()))

    def delete(self, obj: NodeZones) -> None:
        """One is gone."""
        self._news.append(News((), self._clock(), gone=obj.node))

    def take(self) -> Iterator[News]:
        """What has come since the last call, in order."""
        for _ in range(len(self._news)):
            yield self._news.popleft()
