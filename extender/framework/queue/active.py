"""The active part: units in the order of QueueSort, each with its active pods in the order in which they arrived."""

from __future__ import annotations

from extender.framework.plugins import QueueSort, SortedUnit
from extender.framework.queue.lazy_heap import LazyHeap
from extender.framework.queue.queued import QueuedPod
from extender.framework.queue.unit import Unit

__all__ = ["ActiveUnits"]


class ActiveUnits:
    """A unit's place is that of the highest priority and of the oldest among its active pods."""

    def __init__(self, sort: QueueSort) -> None:
        self._sort = sort
        self._units: LazyHeap[Unit] = LazyHeap()

    def add(self, pod: QueuedPod) -> None:
        """It is active now."""
        unit = pod.home
        unit.active.push(pod.number, pod)
        # Few pods move their unit: one that comes first, or one of a gang with a higher priority or another group.
        place, first = unit.place, unit.active.first()
        if (
            place is None
            or first is None
            or first[1] is pod
            or (unit.is_gang and (pod.pod.priority > place[0] or unit.since not in (None, place[1])))
        ):
            self.replace(unit)

    def discard(self, pod: QueuedPod, unit: Unit) -> None:
        """It, of that unit, is not any more."""
        unit.active.discard(pod.number)
        self.replace(unit)

    def pop(self, most: int) -> tuple[Unit, list[QueuedPod]] | None:
        """The first unit's first `most` pods, or a gang whole; None = nothing is active."""
        first = self._units.first()
        if first is None:
            return None
        unit = first[1]
        pods = unit.active.pop(len(unit.active) if unit.is_gang else most)
        self.replace(unit)
        return unit, pods

    def replace(self, unit: Unit) -> None:
        """Give a unit the place that is due to it now."""
        first = unit.active.first()
        if first is None:
            unit.place = None
            self._units.discard(unit.rank)
            return
        priority = unit.priority
        if priority is None:
            priority = max(member.pod.priority for member in unit.active)
        since = first[1].arrived if unit.since is None else unit.since
        if (priority, since) != unit.place:
            self._units.discard(unit.rank)
            unit.place = (priority, since)
            unit.rank = (self._sort.key(SortedUnit(priority, since, unit.key)), unit.key, unit.number)
            self._units.push(unit.rank, unit)
