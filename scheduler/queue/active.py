"""The active part: units in the order of QueueSort, each with its active pods in the order in which they arrived.

With a FlowOrder the units of each flow are sorted for themselves, and it is asked with every pop whose turn it is.
Without one all units are one flow, and nothing is kept of due times and of how long pods wait for a turn.

Which unit comes first: plugin PrioritySort (pkg/scheduler/framework/plugins/queuesort/priority_sort.go).

The active units of one flow: in the order of QueueSort, by due time, and their pods by how long they wait.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from itertools import chain, islice

from kube.objects.objects import PodInfo
from placement.plugins import FlowHead, FlowOrder, Pick, QueueSort, SortedUnit, Turn
from scheduler.queue.lazy_heap import LazyHeap
from scheduler.queue.queued_pods import QueuedPodInfo, Unit

logger = logging.getLogger(__name__)


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
        self.waiting: LazyHeap[QueuedPodInfo] = LazyHeap()
        self._head: FlowHead | None = None

    def touched(self) -> None:
        """What it would say of itself may be another thing now."""
        self._head = None

    def wait(self, pod: QueuedPodInfo) -> None:
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

    def take(self, pick: Pick, most: int) -> tuple[Unit, list[QueuedPodInfo]]:
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

    def _take_longest(self, unit: Unit, most: int) -> list[QueuedPodInfo]:
        """Others of the unit may be in front of them, who came earlier and were tried since."""
        taken: list[QueuedPodInfo] = []
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


class ActiveUnits:
    """A unit's place is that of the highest priority and of the oldest among its active pods."""

    def __init__(self, sort: QueueSort, order: FlowOrder | None = None) -> None:
        self._sort, self._order = sort, order
        self._single = Flow("")  # all units, without an order
        self._flows: dict[str, Flow] = {}  # with one: those that have active units
        self._complained = False

    def add(self, pod: QueuedPodInfo) -> None:
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
            or unit.due != place[2]
        ):
            self.replace(unit)
        if self._order is not None:
            self._flows[unit.flow].wait(pod)

    def discard(self, pod: QueuedPodInfo, unit: Unit) -> None:
        """It, of that unit, is not any more."""
        unit.active.discard(pod.number)
        if self._order is not None:
            self._flows[unit.flow].waiting.discard((pod.waits_since, pod.number))
        self.replace(unit)

    def pop(self, most: int, now: float) -> tuple[Unit, list[QueuedPodInfo]] | None:
        """Take `most` pods of one unit, or a gang whole; None = nothing is active. now: own seconds."""
        if self._order is None:
            if self._single.units.first() is None:
                return None
            flow, turn = self._single, Turn(0)
        elif self._flows:
            flow, turn = self._whose_turn(self._order, now)
        else:
            return None
        unit, pods = flow.take(turn.pick, most if turn.most is None else max(1, min(turn.most, most)))
        self.replace(unit)
        if self._order is not None:
            self._tell(self._order, unit.flow, len(pods))
        return unit, pods

    def coming(self, most: int) -> list[PodInfo]:
        """Return the first pod of each of the first units: of those of one flow in their order, of flows in any."""
        flows = [self._single] if self._order is None else self._flows.values()
        units = islice(chain.from_iterable(flow.units.smallest(most) for flow in flows), most)
        return [first[1].pod for unit in units if (first := unit.active.first()) is not None]

    def given_back(self, unit: Unit, n_pods: int) -> None:
        """Put back pods of the unit that were popped without a look."""
        if self._order is not None:
            self._tell(self._order, unit.flow, -n_pods)

    def replace(self, unit: Unit) -> None:
        """Give a unit the place that is due to it now."""
        flow = self._single
        if self._order is not None:
            flow = self._flow_of(unit.flow)
            flow.touched()
        first = unit.active.first()
        if first is None:
            unit.place = None
            flow.units.discard(unit.rank)
            if unit.due_rank is not None:
                flow.by_due.discard(unit.due_rank)
                unit.due_rank = None
            if not flow.units:
                self._flows.pop(flow.name, None)
            return
        priority = unit.priority
        if priority is None:
            priority = max(member.pod.priority for member in unit.active)
        since = first[1].arrived if unit.since is None else unit.since
        place = (priority, since, unit.due)
        if place != unit.place:
            flow.units.discard(unit.rank)
            unit.place = place
            unit.rank = (
                self._sort.key(SortedUnit(priority, since, unit.key, unit.due, unit.flow)),
                unit.key,
                unit.number,
            )
            flow.units.push(unit.rank, unit)
            if self._order is not None and (unit.due_rank is not None or unit.due < math.inf):
                self._put_by_due(flow, unit, priority)

    def _put_by_due(self, flow: Flow, unit: Unit, priority: int) -> None:
        flow.by_due.discard(unit.due_rank)
        unit.due_rank = None
        if unit.due < math.inf:
            unit.due_rank = (-priority, unit.due, unit.number)
            flow.by_due.push(unit.due_rank, unit)

    def _flow_of(self, name: str) -> Flow:
        flow = self._flows.get(name)
        if flow is None:
            flow = self._flows[name] = Flow(name)
        return flow

    # FlowOrder, which may be mistaken

    def _whose_turn(self, order: FlowOrder, now: float) -> tuple[Flow, Turn]:
        heads = [flow.head() for flow in self._flows.values()]
        try:
            turn = order.next(heads, now)
            flow = self._flows[heads[turn.position].flow]
            flow.unit(turn.pick)
        except Exception:
            self._complain("so that the first by priority and age goes")
            flow, turn = self._flows[min(heads, key=_by_priority).flow], Turn(0)
        return flow, turn

    def _tell(self, order: FlowOrder, flow: str, n_pods: int) -> None:
        try:
            order.taken(flow, n_pods)
        except Exception:
            self._complain("so that it may not be fair")

    def _complain(self, so: str) -> None:
        if not self._complained:
            self._complained = True
            logger.exception("the order of flows raised, %s; this is logged once", so)


def _by_priority(head: FlowHead) -> tuple[Sequence[float], str]:
    return (-head.first.priority, head.first.since), head.flow


class PrioritySort:
    """Higher priority first, then who waits longer."""

    name = "PrioritySort"

    def key(self, unit: SortedUnit) -> tuple[float, ...]:
        return (-unit.priority, unit.since)
