"""The order of units within a flow: that of the queue they wait in."""

from __future__ import annotations

from collections.abc import Mapping

from placement.plugins import SortedUnit
from scheduler.queues.options import Order, PodQueue
from scheduler.queues.queue_of import lane_of


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
