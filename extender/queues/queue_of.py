"""Which queue a job's pod waits in, and who owns it there.

annotation forecast-scheduler.io/queue, if there is such a queue and it is open to the pod's namespace
else the first queue that names its namespace
else "default"
"""

from __future__ import annotations

import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from extender.queues.options import DEFAULT_QUEUE, JobQueue, Order, all_queues
from scorer.cluster.objects import ANNOTATION_PREFIX, PodInfo

__all__ = ["QUEUE_ANNOTATION", "QueueOf", "QueueOwner", "lane_of", "owner_in"]

QUEUE_ANNOTATION: Final = ANNOTATION_PREFIX + "queue"

_MOST_OWNERS: Final = 512
_SHARED_NAMES: Final = 64
_REMEMBERED_SECONDS: Final = 3600.0


class QueueOwner(NamedTuple):
    """A queue and one of those who share it."""

    queue: str
    owner: str


class QueueOf:
    """For any thread.

    Labels are anybody's to write, and every owner costs time with every turn: beyond 512 owners that were seen in a
    queue within the hour, further ones share 64 names ("#7") until others have not been seen for so long.
    """

    def __init__(
        self,
        queues: Sequence[JobQueue],
        *,
        most_owners: int = _MOST_OWNERS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """queues: without `default` it is added."""
        self.queues: Final = {queue.name: queue for queue in all_queues(queues)}
        self._most_owners, self._clock = most_owners, clock
        self._by_namespace: dict[str, JobQueue] = {}
        for queue in self.queues.values():
            for namespace in queue.namespaces:
                self._by_namespace.setdefault(namespace, queue)
        self._lock = threading.Lock()
        self._seen: dict[str, OrderedDict[str, float]] = {name: OrderedDict() for name in self.queues}

    def of(self, pod: PodInfo) -> QueueOwner:
        """Quick, and never an exception."""
        queue = self._queue(pod)
        owner = pod.labels.get(queue.owner_label, "") if queue.owner_label else pod.namespace
        return QueueOwner(queue.name, self._bounded(queue.name, owner))

    def flow_of(self, member: QueueOwner) -> str:
        """Name of the flow: owners have one each where the queue is shared among them, else it is the queue's."""
        return f"{member.queue}/{member.owner if self.queues[member.queue].order is Order.DRF else ''}"

    def _queue(self, pod: PodInfo) -> JobQueue:
        said = pod.annotations.get(QUEUE_ANNOTATION) if pod.annotations else None
        if said is not None:
            queue = self.queues.get(said)
            if queue is not None and (not queue.namespaces or pod.namespace in queue.namespaces):
                return queue
        return self._by_namespace.get(pod.namespace) or self.queues[DEFAULT_QUEUE]

    def _bounded(self, queue: str, owner: str) -> str:
        now = self._clock()
        with self._lock:
            seen = self._seen[queue]
            if owner not in seen and len(seen) >= self._most_owners:
                oldest = next(iter(seen))
                if now - seen[oldest] < _REMEMBERED_SECONDS:
                    return f"#{zlib.crc32(owner.encode()) % _SHARED_NAMES}"
                del seen[oldest]
            seen[owner] = now
            seen.move_to_end(owner)
        return owner


def lane_of(flow: str) -> str:
    """Name of the queue that a flow of jobs is of; of others, the flow."""
    return flow.partition("/")[0]


def owner_in(flow: str) -> str:
    """Name of the owner; '' where the flow is that of a whole queue."""
    return flow.partition("/")[2]
