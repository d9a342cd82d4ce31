"""Events on nodes whose capacity annotation has entries that cannot be read (scorer.predicted.capacity)."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from base.periodic_task import PeriodicTask
from cluster.predicted.capacity import CAPACITY_ANNOTATION, UnreadCapacity
from kube.events.api_event import EventSource
from kube.events.event_recorder import EventRecorder, Post
from kube.events.node_event import node_event
from scorer.scorer import Scorer

_LOOK_SECONDS: Final = 10.0
_MOST_WAITING: Final = 200
_REASON: Final = "UnreadAnnotation"
_ACTION: Final = "ReadingAnnotations"


class CapacityEvents:
    """Reports each mistake once, for as long as the annotation stays; posts in a thread of its own."""

    def __init__(
        self,
        scorer: Scorer,
        post: Post,
        *,
        controller: str,
        instance: str,
        may_write: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        controller : that reports, such as forecast-scheduler.io/extender
        instance   : name of this replica, as events show it
        may_write  : whether this replica leads; once it does, it reports what is still wrong
        clock      : unix seconds
        """
        self._scorer, self._may_write, self._clock = scorer, may_write, clock
        self._source = EventSource(controller, instance, _ACTION)
        self._told: frozenset[UnreadCapacity] = frozenset()
        self._recorder = EventRecorder(post, what="capacities", instance=instance, max_waiting=_MOST_WAITING)
        self._every = PeriodicTask("capacity-annotations", _LOOK_SECONDS, self.look)

    def start(self) -> None:
        """Begin to look and to post. Once only."""
        self._recorder.start()
        self._every.start()

    def stop(self) -> None:
        """End; what waits is posted if that takes no longer than two seconds."""
        self._every.stop()
        self._recorder.stop()

    def look(self) -> None:
        """Post an event for each mistake that was not there at the look before."""
        if not self._may_write():
            return
        with self._scorer.tables.reading() as cluster:
            unread = cluster.unread_capacities()
        now = self._clock()
        for one in unread:
            if one not in self._told:
                self._recorder.record(partial(self._event, one, now), at=now)
        self._told = frozenset(unread)

    def _event(self, unread: UnreadCapacity, at: float) -> dict[str, Any]:
        note = f"{CAPACITY_ANNOTATION}: {'; '.join(unread.mistakes)}; its other entries are in use"
        return node_event(unread.node, reason=_REASON, note=note, at=at, source=self._source)
