"""The thread around queues: it writes an event on pods whose annotations cannot be read; and the metrics of shares."""

from __future__ import annotations

from typing import Final

from base.periodic_task import PeriodicTask
from scheduler.handle import Surroundings
from scheduler.queue_tables import QueueTables
from scheduler.queues.metrics import ShareGauges
from scheduler.reporting.pod_events import PodEvents
from scorer.scorer import Scorer
from serving.upkeep import Upkeep

_LOOK_SECONDS: Final = 1.0


def queue_upkeep(tables: QueueTables, scorer: Scorer, around: Surroundings) -> Upkeep:
    """Return the thread that writes events about annotations that cannot be read, and the metrics of shares."""
    events = PodEvents(around.post, instance=around.instance, what="queues")

    def look() -> None:
        with scorer.tables.reading():
            unread = tables.unread.take()
        if around.may_write():
            for pod, mistakes in unread:
                events.tell(pod, "UnreadAnnotation", mistakes)

    look_again = PeriodicTask("unread-annotations", _LOOK_SECONDS, look, after=around.after)
    return Upkeep((events, look_again), (ShareGauges(tables.shares),))
