"""What goes on around queues in a thread of its own: pods learn which of their annotations cannot be read; and the
metrics of shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastapi import APIRouter
from prometheus_client.registry import Collector

from kube.events.event_recorder import Post
from scheduler.queue_tables import QueueTables
from scheduler.queues.metrics import ShareGauges
from scheduler.reporting.pod_events import PodEvents
from scorer.every import Every
from scorer.scorer import Scorer

_LOOK_SECONDS: Final = 1.0


class QueueUpkeep:
    """
    jobs       : to be started in this order, and stopped in reverse
    collectors : for /metrics
    """

    routers: tuple[APIRouter, ...] = ()
    bodies: tuple[type, ...] = ()

    def __init__(
        self,
        tables: QueueTables,
        scorer: Scorer,
        *,
        post: Post | None,
        instance: str,
        may_write: Callable[[], bool],
        after: Callable[[], bool],
    ) -> None:
        """
        post      : of events; None = none are written
        may_write : whether this replica leads
        after     : whether the cluster was read
        """
        self._tables, self._scorer, self._may_write = tables, scorer, may_write
        self._events = PodEvents(post, instance=instance, what="queues")
        self.jobs = (self._events, Every("unread-annotations", _LOOK_SECONDS, self._look, after=after))
        self.collectors: tuple[Collector, ...] = (ShareGauges(tables.shares),)

    def _look(self) -> None:
        with self._scorer.reading():
            unread = self._tables.unread.take()
        if self._may_write():
            for pod, mistakes in unread:
                self._events.tell(pod, "UnreadAnnotation", mistakes)
