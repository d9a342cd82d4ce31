"""The active part: units in the order of QueueSort, each with its active pods in the order in which they arrived.

With a FlowOrder the units of each flow are sorted for themselves, and it is asked with every pop whose turn it is.
Without one all units are one flow, and nothing is kept of due times and of how long pods wait for a turn.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from itertools import chain, islice

from kube.objects.objects import PodInfo
from placement.plugins import FlowHead, FlowOrder, QueueSort, SortedUnit, Turn
from scheduler.queue.queue_flow import Flow
from scheduler.queue.queued import QueuedPod, Unit

logger = logging.getLogger(__name__)


class ActiveUnits:
    """A unit's place is that of the highest priority and of the oldest among its active pods."""

    def __init__(self, sort: QueueSort, order: FlowOrder | None = None) -> None:
        self._sort, self._order = sort, order
        self._single = Flow("")  # all units, without an order
        self._flows: dict[str, Flow] = {}  # with one: those that have active units
        self._complained = False

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
            or unit.due != place[2]
        ):
            self.replace(unit)
        if self._order is not None:
            self._flows[unit.flow].wait(pod)

    def discard(self, pod: QueuedPod, unit: Unit) -> None:
        """It, of that unit, is not any more."""
        unit.active.discard(pod.number)
        if self._order is not None:
            self._flows[unit.flow].waiting.discard((pod.waits_since, pod.number))
        self.replace(unit)

    def pop(self, most: int, now: float) -> tuple[Unit, list[QueuedPod]] | None:
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
