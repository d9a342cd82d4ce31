"""Which queue a pod waits in, and who owns it there.

annotation forecast-scheduler.io/queue, if there is such a queue and it is open to the pod
else the first queue that selects it by profile, namespace or labels
else "tenants", if it counts in an ElasticQuota
else "default", if that takes pods of its profile
else none: it goes by priority and age among all pods of no queue
"""

from __future__ import annotations

import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from kube.objects.objects import ANNOTATION_PREFIX, PodInfo
from scheduler.quota_queues.quota_queue_settings import (
    DEFAULT_QUEUE,
    TENANT_QUEUE,
    Order,
    PodQueue,
    all_queues,
    tenant_queue,
)

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

    Any client may write labels, and every owner costs time with every turn: beyond 512 owners that were seen in a queue
    within the hour, further ones share 64 names ("#7") until others have not been seen for an hour.
    """

    def __init__(
        self,
        queues: Sequence[PodQueue],
        profiles: Mapping[str, str],
        *,
        tenant_of: Callable[[PodInfo], str] | None = None,
        most_owners: int = _MOST_OWNERS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        queues    : without `default` it is added
        profiles  : those that run here, by scheduler name
        tenant_of : name of the tenant in whose quota a pod counts, '' = none; None = tenants have no queue
        """
        self.queues: Final = {queue.name: queue for queue in all_queues(queues)}
        if tenant_of is not None:
            self.queues[TENANT_QUEUE] = tenant_queue()
        self._tenant_of = tenant_of
        self._most_owners, self._clock = most_owners, clock
        open_to = {
            profile: [
                one
                for one in self.queues.values()
                if one.name != TENANT_QUEUE and (not one.profiles or profile in one.profiles)
            ]
            for profile in profiles.values()
        }
        self._profiles = {
            name: profile for name, profile in profiles.items() if open_to[profile] or tenant_of is not None
        }
        self._selecting = {
            profile: _Selecting([one for one in queues if one.selects]) for profile, queues in open_to.items()
        }
        self._lock = threading.Lock()
        self._seen: dict[str, OrderedDict[str, float]] = {name: OrderedDict() for name in self.queues}

    def takes_any_of(self, scheduler_name: str) -> bool:
        """Whether some queue is open to pods of this profile."""
        return scheduler_name in self._profiles

    def of(self, pod: PodInfo) -> QueueOwner | None:
        """None = no queue takes it. Quick, and never an exception."""
        queue = self._queue(pod)
        if queue is None or queue.name == DEFAULT_QUEUE:
            tenant = self._tenant(pod)
            if tenant:
                return QueueOwner(TENANT_QUEUE, tenant)
        if queue is None:
            return None
        owner = pod.labels.get(queue.owner_label, "") if queue.owner_label else pod.namespace
        return QueueOwner(queue.name, self._bounded(queue.name, owner))

    def flow_of(self, member: QueueOwner) -> str:
        """Name of the flow: owners have one each where the queue is shared among them, else it is the queue's."""
        return f"{member.queue}/{member.owner if self.queues[member.queue].order is Order.DRF else ''}"

    def _queue(self, pod: PodInfo) -> PodQueue | None:
        profile = self._profiles.get(pod.scheduler_name)
        if profile is None:
            return None
        said = pod.annotations.get(QUEUE_ANNOTATION) if pod.annotations else None
        if said is not None and said != TENANT_QUEUE:
            queue = self.queues.get(said)
            if queue is not None and queue.is_open_to(pod, profile):
                return queue
        for queue in self._selecting[profile].of(pod.namespace):
            if queue.is_open_to(pod, profile):
                return queue
        return None

    def _tenant(self, pod: PodInfo) -> str:
        if self._tenant_of is None or pod.scheduler_name not in self._profiles:
            return ""
        return self._tenant_of(pod)

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


class _Selecting:
    """Queues that select pods of one profile, in their order, by what the pod's namespace leaves of them."""

    def __init__(self, queues: Sequence[PodQueue]) -> None:
        self._anywhere = tuple(one for one in queues if not one.namespaces)
        self._by_namespace = {
            name: tuple(one for one in queues if not one.namespaces or name in one.namespaces)
            for name in {name for one in queues for name in one.namespaces}
        }

    def of(self, namespace: str) -> tuple[PodQueue, ...]:
        return self._by_namespace.get(namespace, self._anywhere)


def lane_of(flow: str) -> str:
    """Name of the queue that a flow is of; of pods of no queue, the flow."""
    return flow.partition("/")[0]
