"""The active units of one flow: in the order of QueueSort, by due time, and their pods by how long they wait."""

from __future__ import annotations

import math

from placement.plugins import FlowHead, Pick, SortedUnit
from scheduler.queue.lazy_heap import LazyHeap
from scheduler.queue.queued import QueuedPod, Unit


class Flow:
    """
    units   : by their rank
    by_due  : those with a due time, highest priority first
    waiting : active pods by (since when they wait for an attempt, number)
    """

    __slots__ = ("_head", "by_due", "name", "units", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.units: LazyHeap[Unit] = LazyHeap()
        self.by_due: LazyHeap[Unit] = LazyHeap()
        self.waiting: LazyHeap[QueuedPod] = LazyHeap()
        self._head: FlowHead | None = None

    def touched(self) -> None:
        """What it would say of itself may be another thing now."""
        self._head = None

    def wait(self, pod: QueuedPod) -> None:
        """It is active now."""
        self.waiting.push((pod.waits_since, pod.number), pod)
        head = self._head
        if head is not None and (pod.waits_since < head.waits_since or len(self.waiting) >= 2 * head.n_pods):
            self._head = None

    def head(self) -> FlowHead:
        """Return what FlowOrder compares. There is an active unit."""
        if self._head is None:
            unit = self.unit(Pick.FIRST)
            first = unit.active.first()
            assert first is not None
            due = self.by_due.first()
            longest = self.waiting.first()
            self._head = FlowHead(
                self.name,
                sorted_unit(unit),
                first[1].pod,
                None if due is None else sorted_unit(due[1]),
                math.inf if longest is None else longest[1].waits_since,
                len(self.waiting),
            )
        return self._head

    def take(self, pick: Pick, most: int) -> tuple[Unit, list[QueuedPod]]:
        """Take `most` pods out of the active ones, or a gang whole. LookupError if there is no such unit."""
        unit = self.unit(pick)
        if unit.is_gang:
            pods = unit.active.pop(len(unit.active))
        elif pick is Pick.LONGEST:
            pods = self._take_longest(unit, most)
        else:
            pods = unit.active.pop(most)
        for pod in pods:
            self.waiting.discard((pod.waits_since, pod.number))
        self._head = None
        return unit, pods

    def unit(self, pick: Pick) -> Unit:
        """That is to go next. LookupError if there is none."""
        if pick is Pick.LONGEST:
            longest = self.waiting.first()
            if longest is not None:
                return longest[1].home
        else:
            first = (self.units if pick is Pick.FIRST else self.by_due).first()
            if first is not None:
                return first[1]
        raise LookupError(f"flow {self.name!r} has no unit for Pick.{pick.name}")

    def _take_longest(self, unit: Unit, most: int) -> list[QueuedPod]:
        """Others of the unit may be in front of them, who came earlier and were tried since."""
        taken: list[QueuedPod] = []
        while len(taken) < most and (longest := self.waiting.first()) is not None and longest[1].home is unit:
            self.waiting.discard(longest[0])
            unit.active.discard(longest[1].number)
            taken.append(longest[1])
        return taken


def sorted_unit(unit: Unit) -> SortedUnit:
    """As plugins see it. It has a place."""
    assert unit.place is not None
    priority, since, due = unit.place
    return SortedUnit(priority, since, unit.key, due, unit.flow)
