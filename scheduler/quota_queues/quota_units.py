"""What is popped as one of the pods that wait in queues, and in which order within a flow.

    in a PodGroup        the gang, in the flow of its first pod
    of no queue          its controller's pods, in the flow "online"
    of a queue           its controller's pods, by due time, in the flow of the queue or of its owner
    a job's, of a queue  all that wait of one owner in one queue with the same priority and due time

Not the pods of one Job: a storm is many Jobs of few pods each, and what is popped together is placed together. The
order of a queue needs nothing finer: it decides between owners, priorities and due times.

Of FIFO among jobs that leaves: a turn takes pods of the owner who waits longest, some of whom may be younger than the
next owner's. Pods of one Job are due at the same time, since durations count from the Job. The many Jobs of a storm,
and pods without a Job, are due by the second that each was created in: due times count in steps of 10 s, rounded to
the earlier one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from kube.objects.objects import PodInfo
from placement.plugins import SortedUnit
from scheduler.queue.queued_pods import UnitOf, Units, unit_by_owner
from scheduler.quota_queues.queue_of import QueueOf, lane_of
from scheduler.quota_queues.quota_queue_settings import Order, PodQueue

ONLINE_FLOW: Final = "online"
"""Of pods of no queue: services, unless the settings say otherwise. Flows of queues have a '/' in their names."""

_DUE_STEP: Final = 10.0


class QueueUnits:
    """Implements Units."""

    def __init__(
        self,
        gangs: Units | None,
        *,
        is_job: Callable[[PodInfo], bool],
        due: Callable[[PodInfo], float],
        queue_of: QueueOf,
    ) -> None:
        """
        gangs  : says of any pod which gang or controller it is of; None = there are no gangs
        is_job : whether the job profile places the pod
        due    : unix seconds, the latest moment the pod may start; inf = whenever. Quick, and no exceptions
        """
        self._gangs, self._is_job, self._due, self._queue_of = gangs, is_job, due, queue_of

    def unit_of(self, pod: PodInfo) -> UnitOf:
        of = unit_by_owner(pod) if self._gangs is None else self._gangs.unit_of(pod)
        member = self._queue_of.of(pod)
        if member is None:
            return UnitOf(of.key, of.since, of.is_gang, ONLINE_FLOW)
        due = self._due(pod)
        due = due // _DUE_STEP * _DUE_STEP if math.isfinite(due) else math.inf
        flow = self._queue_of.flow_of(member)
        if of.is_gang:
            return UnitOf(of.key, of.since, True, flow, due)
        # No name of a PodGroup, "namespace/name", has a colon in it.
        is_job = self._is_job(pod)
        unit = f"jobs:{member.queue}/{member.owner}" if is_job else f"{of.key}@{flow}"
        since = None if is_job else of.since
        return UnitOf(f"{unit}@{due:.0f}" if due < math.inf else unit, since, False, flow, due)


class FlowSort:
    """Implements QueueSort. Flows that are no queue's are sorted by priority and age, as PrioritySort does."""

    name = "FlowSort"

    def __init__(self, queues: Mapping[str, PodQueue]) -> None:
        self._orders = {name: queue.order for name, queue in queues.items()}

    def key(self, unit: SortedUnit) -> tuple[float, ...]:
        """FIFO (since), DEADLINE (-priority, due, since), else (-priority, since)."""
        order = self._orders.get(lane_of(unit.flow)) if "/" in unit.flow else None
        if order is Order.FIFO:
            return (unit.since,)
        if order is Order.DEADLINE:
            return (-unit.priority, unit.due, unit.since)
        return (-unit.priority, unit.since)
