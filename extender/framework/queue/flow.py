"""The active units of one flow: in the order of QueueSort, by due time, and their untried pods by age."""

from __future__ import annotations

import math
from collections import OrderedDict

from extender.framework.plugins import FlowHead, Pick, SortedUnit
from extender.framework.queue.lazy_heap import LazyHeap
from extender.framework.queue.queued import QueuedPod
from extender.framework.queue.unit import Unit

__all__ = ["Flow", "sorted_unit"]


class Flow:
    """
    units   : by their rank
    by_due  : those with a due time, highest priority first
    untried : active pods that were never popped, by number, in the order in which they became active
    """

    __slots__ = ("_head", "by_due", "name", "units", "untried")

    def __init__(self, name: str) -> None:
        self.name = name
        self.units: LazyHeap[Unit] = LazyHeap()
        self.by_due: LazyHeap[Unit] = LazyHeap()
        self.untried: OrderedDict[int, QueuedPod] = OrderedDict()
        self._head: FlowHead | None = None

    def touched(self) -> None:
        """What it would say of itself may be another thing now."""
        self._head = None

    def head(self) -> FlowHead:
        """What FlowOrder is told. There is an active unit."""
        if self._head is None:
            unit = self.unit(Pick.FIRST)
            first = unit.active.first()
            assert first is not None
            due = self.by_due.first()
            untried = next(iter(self.untried.values()), None)
            self._head = FlowHead(
                self.name,
                sorted_unit(unit),
                first[1].pod,
                None if due is None else sorted_unit(due[1]),
                math.inf if untried is None else untried.entered,
            )
        return self._head

    def take(self, pick: Pick, most: int) -> tuple[Unit, list[QueuedPod]]:
        """Pods that are not active any more, at most so many or a gang whole. LookupError if there is no such unit."""
        unit = self.unit(pick)
        if unit.is_gang:
            pods = unit.active.pop(len(unit.active))
        elif pick is Pick.UNTRIED:
            pods = self._take_untried(unit, most)
        else:
            pods = unit.active.pop(most)
        for pod in pods:
            self.untried.pop(pod.number, None)
        self._head = None
        return unit, pods

    def unit(self, pick: Pick) -> Unit:
        """That is to go next. LookupError if there is none."""
        if pick is Pick.UNTRIED:
            for pod in self.untried.values():
                return pod.home
        else:
            first = (self.units if pick is Pick.FIRST else self.by_due).first()
            if first is not None:
                return first[1]
        raise LookupError(f"flow {self.name!r} has no unit for Pick.{pick.name}")

    def _take_untried(self, unit: Unit, most: int) -> list[QueuedPod]:
        """Those that wait longest: others of the unit may be in front of them, who were tried and came back."""
        taken: list[QueuedPod] = []
        for pod in self.untried.values():
            if len(taken) == most or pod.home is not unit:
                break
            taken.append(pod)
        for pod in taken:
            unit.active.discard(pod.number)
        return taken


def sorted_unit(unit: Unit) -> SortedUnit:
    """As plugins see it. It has a place."""
    assert unit.place is not None
    priority, since, due = unit.place
    return SortedUnit(priority, since, unit.key, due, unit.flow)
