"""The parts of the queue, and how a pod gets from one into another: what is kept where, and nothing of why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from placement.plugins import FlowOrder, QueueSort
from scheduler.queue.active import ActiveUnits
from scheduler.queue.in_flight import InFlight
from scheduler.queue.lazy_heap import LazyHeap
from scheduler.queue.plugin_calls import PluginCalls
from scheduler.queue.queued import Part, QueuedPod, Unit
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
        self.timers: LazyHeap[QueuedPod] = LazyHeap()
        self.unschedulable = UnschedulablePods(asking)
        self.in_flight = InFlight(most_events)
        self.lengths: dict[Part, int] = dict.fromkeys(Part, 0)
        self.incoming: Counter[tuple[str, Part]] = Counter()

    def move(self, pod: QueuedPod, part: Part, because: str, now: float, *, due: float | None = None) -> None:
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

    def leave(self, pod: QueuedPod, unit: Unit | None = None) -> None:
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

    def set_timer(self, pod: QueuedPod, due: float | None) -> None:
        """When it moves on by itself; None = it does not."""
        if pod.timer is not None:
            self.timers.discard(pod.timer)
        pod.timer = None if due is None else (due, pod.number)
        if pod.timer is not None:
            self.timers.push(pod.timer, pod)

    def take_off(self, most: int, now: float) -> tuple[Unit, Sequence[QueuedPod]] | None:
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
