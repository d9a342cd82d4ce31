"""What happened while pods were in flight: one log for all, each of them knows from where on it is concerned.

Upstream keeps pods and events in one list (inFlightEvents of active_queue.go); here marks point into a log, and what is
in front of the oldest mark is forgotten.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

from placement.cluster_events import ClusterEvent


class Mark:
    """How many events had happened when `pods` pods, that are in flight still, were popped."""

    __slots__ = ("pods", "position")

    def __init__(self, position: int) -> None:
        self.position, self.pods = position, 0


class InFlight:
    """The log, of at most `most_events`."""

    def __init__(self, most_events: int) -> None:
        self._most = most_events
        self._events: deque[ClusterEvent] = deque()
        self._forgotten = 0  # events in front of the log
        self._marks: deque[Mark] = deque()  # by position

    def begin(self, pods: int) -> Mark:
        """Begin to record events for popped pods."""
        position = self._forgotten + len(self._events)
        if not self._marks or self._marks[-1].position != position:
            self._marks.append(Mark(position))
        mark = self._marks[-1]
        mark.pods += pods
        return mark

    def end(self, mark: Mark) -> None:
        """One of them is not in flight any more."""
        mark.pods -= 1
        marks = self._marks
        while marks and not marks[0].pods:
            marks.popleft()
        if not marks:
            self._forget(len(self._events))
        elif marks[0].position > self._forgotten:
            self._forget(marks[0].position - self._forgotten)

    def record(self, event: ClusterEvent) -> None:
        """Remember an event for the units in flight."""
        if self._marks:
            if len(self._events) == self._most:
                self._forget(1)
            self._events.append(event)

    def since(self, mark: Mark) -> Sequence[ClusterEvent] | None:
        """In order; None = some have been forgotten."""
        if mark.position < self._forgotten:
            return None
        if mark.position == self._forgotten + len(self._events):
            return ()
        return list(islice(self._events, mark.position - self._forgotten, None))

    def __len__(self) -> int:
        return len(self._events)

    def _forget(self, n_events: int) -> None:
        self._forgotten += n_events
        if n_events == len(self._events):
            self._events.clear()
            return
        for _ in range(n_events):
            self._events.popleft()
