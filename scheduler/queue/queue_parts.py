"""The parts of the queue, and how a pod gets from one into another: what is kept where, for how long, and nothing of
why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from placement.plugins import FlowOrder, QueueSort
from scheduler.queue.active import ActiveUnits
from scheduler.queue.in_flight import InFlight
from scheduler.queue.lazy_heap import LazyHeap
from scheduler.queue.plugin_calls import PluginCalls
from scheduler.queue.queued_pods import Part, QueuedPodInfo, Unit, UnitOf, Units
from scheduler.queue.unschedulable import UnschedulablePods

# An Enum's member is found several times faster by a name of its own (CPython 3.11).
ACTIVE, UNSCHEDULABLE, GATED = Part.ACTIVE, Part.UNSCHEDULABLE, Part.GATED
IN_FLIGHT, NOWHERE = Part.IN_FLIGHT, Part.NOWHERE


class Parts:
    """A pod is in one part at a time. Times are the queue's own.

    active        : in the order in which units are popped
    timers        : when pods that wait move on by themselves: the backoff is over, unschedulable for too long, a gate
                    that only asked to wait
    unschedulable : by the events that wake them
    in_flight     : what happened meanwhile
    lengths       : pods by part
    incoming      : how many pods came into which part because of what, since the start
    """

    def __init__(self, sort: QueueSort, asking: PluginCalls, most_events: int, flows: FlowOrder | None = None) -> None:
        self.active = ActiveUnits(sort, flows)
        self.timers: LazyHeap[QueuedPodInfo] = LazyHeap()
        self.unschedulable = UnschedulablePods(asking)
        self.in_flight = InFlight(most_events)
        self.lengths: dict[Part, int] = dict.fromkeys(Part, 0)
        self.incoming: Counter[tuple[str, Part]] = Counter()

    def move(self, pod: QueuedPodInfo, part: Part, because: str, now: float, *, due: float | None = None) -> None:
        """Into any part but IN_FLIGHT. due: when it moves on by itself, None = it does not."""
        before = pod.part
        if before is not NOWHERE:
            self.leave(pod)
        if before is NOWHERE or before is GATED:
            pod.waits_since = now
        pod.part, pod.entered = part, now
        self.lengths[part] += 1
        self.incoming[because, part] += 1
        if part is ACTIVE:
            self.active.add(pod)
            return
        if part is GATED:
            pod.home.n_gated += 1
        if due is not None:
            self.set_timer(pod, due)
        if part is UNSCHEDULABLE:
            self.unschedulable.add(pod)

    def leave(self, pod: QueuedPodInfo, unit: Unit | None = None) -> None:
        """Out of its part, into none. unit: that it was of when it came into its part, None = that it is of."""
        part = pod.part
        if part is NOWHERE:
            return
        self.lengths[part] -= 1
        pod.part = NOWHERE
        unit = unit or pod.home
        if part is ACTIVE:
            self.active.discard(pod, unit)
        elif part is IN_FLIGHT:
            if pod.mark is not None:
                self.in_flight.end(pod.mark)
            pod.mark = None
        else:
            unit.n_gated -= part is GATED
            self.set_timer(pod, None)
            self.unschedulable.discard(pod)

    def set_timer(self, pod: QueuedPodInfo, due: float | None) -> None:
        """When it moves on by itself; None = it does not."""
        if pod.timer is not None:
            self.timers.discard(pod.timer)
        pod.timer = None if due is None else (due, pod.number)
        if pod.timer is not None:
            self.timers.push(pod.timer, pod)

    def take_off(self, most: int, now: float) -> tuple[Unit, Sequence[QueuedPodInfo]] | None:
        """The first of the active pods, which are in flight from now on; None = there are none."""
        first = self.active.pop(most, now)
        if first is None:
            return None
        unit, pods = first
        mark = self.in_flight.begin(len(pods))
        for pod in pods:
            pod.part, pod.entered, pod.mark = Part.IN_FLIGHT, now, mark
            pod.version, pod.changed = unit.version, False
            pod.attempts += 1
        unit.attempts += 1
        self.lengths[Part.ACTIVE] -= len(pods)
        self.lengths[Part.IN_FLIGHT] += len(pods)
        return unit, pods


class UnitTable:
    """A unit is there while there are pods of it."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self._by_key: dict[str, dict[int | None, Unit]] = {}  # then by priority; None = a gang
        self._n_units = 0

    def join(self, queued: QueuedPodInfo) -> None:
        """A pod that is of none yet."""
        self._put(queued, self._units.unit_of(queued.pod))

    def quit(self, queued: QueuedPodInfo) -> None:
        """It is of none any more."""
        unit = queued.home
        del unit.members[queued.pod.uid]
        if not unit.members:
            by_priority = self._by_key[unit.key]
            del by_priority[unit.priority]
            if not by_priority:
                del self._by_key[unit.key]

    def ask_again(self, queued: QueuedPodInfo) -> Unit | None:
        """Which unit a pod is of now; the unit it was of, if that is another one, which it has left then."""
        of, unit = self._units.unit_of(queued.pod), queued.home
        is_same = of.key == unit.key and (None if of.is_gang else queued.pod.priority) == unit.priority
        if is_same and (of.is_gang or of.flow == unit.flow):
            unit.follow(of)
            return None
        self.quit(queued)
        self._put(queued, of)
        return unit

    def of_key(self, key: str) -> list[Unit]:
        """A gang, or the units of a controller, one for each priority."""
        return list(self._by_key.get(key, {}).values())

    def _put(self, queued: QueuedPodInfo, of: UnitOf) -> None:
        priority = None if of.is_gang else queued.pod.priority
        by_priority = self._by_key.get(of.key)
        if by_priority is None:
            by_priority = self._by_key[of.key] = {}
        unit = by_priority.get(priority)
        if unit is None:
            unit = by_priority[priority] = Unit(of, self._n_units, priority)
            self._n_units += 1
        unit.follow(of)
        unit.members[queued.pod.uid] = queued
        queued.unit, queued.home = of.key, unit
