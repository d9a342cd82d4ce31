from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from placement.plugins import Hint
from scheduler.queue.options import QueueOptions
from scheduler.queue.queued import Part, QueuedPod
from tests.scheduler.queue.queue_world import BEGIN, FIT, SPREAD, STRANGE, World, a_pod, node_added
from tests.scheduler.queue.slow_queue import SlowQueue, TakesTurns

# The log is short, so that it runs over; what was forgotten wakes, which the model is told by `is_changed`.
_OPTIONS = QueueOptions(most_events=5)
_UIDS = st.integers(0, 11).map(lambda number: f"p{number}")
_ZONES = st.sampled_from(["x", "y"])
_PLUGINS = st.sets(st.sampled_from([FIT, SPREAD, STRANGE]), max_size=2).map(frozenset)
_PARTS = ("active", "backoff", "unschedulable", "gated")


class QueueMachine(RuleBasedStateMachine):
    """The queue against the plain model: after every step each pod is in the same part, and pops give the same."""

    HAS_FLOWS = False

    def __init__(self) -> None:
        super().__init__()
        self.world = World(_OPTIONS, flows=TakesTurns() if self.HAS_FLOWS else None)
        self.closed: set[str] = set()  # gates
        self.world.gated = dict.fromkeys(self.closed, "")
        self.model = SlowQueue(lambda pod: pod.uid not in self.closed, self.helps, _OPTIONS, BEGIN)
        self.model.takes_turns = self.HAS_FLOWS
        self.in_hand: list[list[QueuedPod]] = []

    def helps(self, name: str, pod: PodInfo, event: ClusterEvent) -> bool:
        plugin = self.world.plugins.get(name)
        return plugin is None or (event.kind in plugin.woken_by and plugin.hint(pod, event) is Hint.QUEUE)

    def put(self, pod: PodInfo) -> None:
        of = self.world.unit_of(pod)
        self.world.put(pod)
        self.model.put(pod, of.key, is_gang=of.is_gang, arrived=self.world.now)

    @rule(uid=_UIDS, zone=_ZONES)
    def a_pod_comes_or_changes(self, uid: str, zone: str) -> None:
        number = int(uid[1:])
        if number < 4:
            pod = a_pod(uid, unit="u", zone=zone, priority=number % 2, flow="x")
        elif number < 10:
            # Of one gang all are due at one time, which may change of a pod alone.
            flow, due = ("x", math.inf) if number < 7 else ("y", 30.0)
            pod = a_pod(uid, gang=f"ns/g{number // 7}", zone=zone, priority=number % 3, flow=flow, due=due)
        else:
            pod = a_pod(uid, zone=zone, flow=zone, due=20.0 if zone == "y" else math.inf)
        self.put(pod)

    @rule(uid=_UIDS)
    def its_status_changes(self, uid: str) -> None:
        if uid in self.model.pods:
            self.world.put(replace(self.model.pods[uid].pod, started=self.world.now))

    @rule(uid=_UIDS)
    def it_goes(self, uid: str) -> None:
        self.world.queue.remove(uid)
        self.model.remove(uid)

    @rule(uid=_UIDS, tell=st.booleans())
    def its_gate_opens_or_closes(self, uid: str, tell: bool) -> None:
        self.closed ^= {uid}
        self.world.gated = dict.fromkeys(self.closed, "no")
        if tell and uid in self.model.pods:
            key = self.model.pods[uid].key
            self.world.queue.wake_units([key])
            self.model.wake_unit(key)

    @rule(most=st.integers(1, 3))
    def pop(self, most: int) -> None:
        before = {queued.pod.uid for batch in self.in_hand for queued in batch if queued.part is Part.IN_FLIGHT}
        first = self.world.pop(most)
        pods = [] if first is None else list(first.pods)
        assert [queued.pod.uid for queued in pods] == self.model.pop(most)
        assert not before & {queued.pod.uid for queued in pods}  # nobody twice at once
        if pods:
            self.in_hand.append(pods)

    @precondition(lambda self: self.in_hand)
    @rule(data=st.data(), by=st.one_of(st.none(), _PLUGINS))
    def back(self, data: st.DataObject, by: frozenset[str] | None) -> None:
        batch = self.in_hand.pop(data.draw(st.integers(0, len(self.in_hand) - 1)))
        # A pod that went and came anew meanwhile is another one, of which this attempt says nothing.
        current = [queued.pod.uid for queued in batch if queued.part is Part.IN_FLIGHT]
        for uid in current:
            self.model.pods[uid].is_changed |= len(self.model.pods[uid].happened) > _OPTIONS.most_events
        if by is None:
            self.world.queue.failed(batch)
        else:
            self.world.queue.rejected(batch, by, "no room")
        self.model.back(current, by)

    @precondition(lambda self: self.in_hand)
    @rule(data=st.data())
    def bound(self, data: st.DataObject) -> None:
        for queued in self.in_hand.pop(data.draw(st.integers(0, len(self.in_hand) - 1))):
            if queued.part is Part.IN_FLIGHT:
                self.world.queue.done(queued.pod.uid)
                self.model.done(queued.pod.uid)

    @rule(zone=_ZONES, kind=st.sampled_from([EventKind.NODE_ADDED, EventKind.POD_LEFT, EventKind.STORAGE_CHANGED]))
    def something_happens(self, zone: str, kind: EventKind) -> None:
        event = replace(node_added(zone), kind=kind)
        self.world.queue.happened(event)
        self.model.happened(event)

    @rule(seconds=st.sampled_from([0.25, 1.0, 3.0, 10.0, 301.0]))
    def time_goes_by(self, seconds: float) -> None:
        self.model.now += seconds
        self.world.after(seconds)
        self.model.tick()

    @rule(seconds=st.sampled_from([0.5, 1_024.0]))
    def the_clock_is_set_back(self, seconds: float) -> None:
        self.world.now -= seconds
        self.world.queue.tick()

    @invariant()
    def parts_are_the_same(self) -> None:
        expected = {uid: each.part for uid, each in self.model.pods.items()}
        assert self.world.parts() == expected
        parts = list(expected.values())
        assert self.world.queue.lengths() == {part: parts.count(part) for part in _PARTS}
        assert self.world.queue.in_flight == parts.count("in_flight")

    @invariant()
    def a_gang_is_in_one_part(self) -> None:
        parts: dict[str, set[str]] = {}
        for waiting in self.world.queue.waiting():
            if waiting.pod.labels.get("gang") and waiting.part.value in ("active", "backoff", "unschedulable"):
                parts.setdefault(waiting.unit, set()).add(waiting.part.value)
        assert all(len(there) == 1 for there in parts.values())

    @invariant()
    def units_know_how_many_are_gated(self) -> None:
        for by_priority in self.world.queue._table._by_key.values():
            for unit in by_priority.values():
                assert unit.n_gated == len(unit.in_part(Part.GATED))

    @invariant()
    def nothing_is_remembered_for_nobody(self) -> None:
        if not self.world.queue.in_flight:
            assert len(self.world.queue._parts.in_flight) == 0
        assert len(self.world.queue._parts.in_flight) <= _OPTIONS.most_events

    def teardown(self) -> None:
        """Whatever was done to them, in the end all pods come out, once."""
        for batch in self.in_hand:
            self.world.queue.failed(batch)
        self.closed.clear()
        self.world.gated = {}
        self.world.queue.happened(ClusterEvent(EventKind.TIMEOUT))
        self.world.after(_OPTIONS.backoff.longest)
        assert set(self.world.parts().values()) <= {"active"}
        popped = [uid for uids in self.world.all_popped() for uid in uids]
        assert sorted(popped) == sorted(self.model.pods)
        for uid in popped:
            self.world.queue.done(uid)
        assert self.world.queue.waiting() == []
        assert self.world.queue._table._by_key == {}
        assert self.world.queue._parts.active._flows == {}
        assert len(self.world.queue._parts.timers) == 0
        assert list(self.world.queue._parts.unschedulable) == []


class FlowsMachine(QueueMachine):
    """The same with an order of flows, which picks units in all ways."""

    HAS_FLOWS = True


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(stateful_step_count=60, deadline=None)
TestFlows = FlowsMachine.TestCase
TestFlows.settings = settings(stateful_step_count=60, deadline=None)
