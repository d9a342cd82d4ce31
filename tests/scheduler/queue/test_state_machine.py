from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.plugins import FlowHead, Pick, Turn
from scheduler.loop_settings import QueueOptions
from scheduler.queue.queued_pods import Part, QueuedPodInfo
from testing.constants import with_constants
from tests.scheduler.queue.queue_world import BEGIN, FIT, SPREAD, STRANGE, World, a_pod, node_added

_WAITING = ("active", "backoff", "unschedulable")


class TakesTurns:
    """A FlowOrder for tests that picks in all ways."""

    MOST: Final = 2

    def __init__(self) -> None:
        self.turns = 0
        self.n_taken: dict[str, int] = {}

    def next(self, heads: Sequence[FlowHead], now: float) -> Turn:
        self.turns += 1
        at = min(range(len(heads)), key=lambda at: (self.n_taken.get(heads[at].flow, 0), heads[at].flow))
        if self.turns % 2 and heads[at].due is not None:
            return Turn(at, self.MOST, Pick.DUE)
        if self.turns % 3:
            return Turn(at, self.MOST, Pick.LONGEST)
        return Turn(at, self.MOST)

    def taken(self, flow: str, n_pods: int) -> None:
        self.n_taken[flow] = self.n_taken.get(flow, 0) + n_pods


@dataclass(eq=False)
class SlowPod:
    pod: PodInfo
    key: str
    is_gang: bool
    arrived: float
    part: str = ""
    attempts: int = 0
    until: float = 0.0
    flush: float = 0.0
    by: frozenset[str] = frozenset()
    happened: list[ClusterEvent] = field(default_factory=list)  # in flight
    is_changed: bool = False  # in flight
    waits_since: float = 0.0  # for an attempt
    number: int = 0


@dataclass
class SlowQueue:
    """now: set by the test, never back. helps: (plugin, pod, event). Pods are in the order in which they arrived."""

    gate: Callable[[PodInfo], bool]
    helps: Callable[[str, PodInfo, ClusterEvent], bool]
    options: QueueOptions
    now: float
    pods: dict[str, SlowPod] = field(default_factory=dict)
    gang_attempts: dict[str, int] = field(default_factory=dict)
    gang_until: dict[str, float] = field(default_factory=dict)
    takes_turns: bool = False  # as TakesTurns says
    turns: int = 0
    taken: dict[str, int] = field(default_factory=dict)  # by flow
    n_seen: int = 0

    def put(self, pod: PodInfo, key: str, *, is_gang: bool, arrived: float) -> None:
        known = self.pods.get(pod.uid)
        if known is None:
            self.n_seen += 1
            new = self.pods[pod.uid] = SlowPod(pod, key, is_gang, arrived, waits_since=self.now, number=self.n_seen)
            self._admit(new)
            return
        if pod == known.pod:
            return
        moves = known.pod.labels.get("flow") != pod.labels.get("flow")
        known.pod = pod
        self._reconsider(known)
        if moves and known.part != "in_flight":  # it comes last there
            known.waits_since = self.now

    def remove(self, uid: str) -> None:
        gone = self.pods.pop(uid, None)
        if gone is not None and gone.is_gang and not self._gang(gone):
            self.gang_attempts.pop(gone.key, None)
            self.gang_until.pop(gone.key, None)

    def done(self, uid: str) -> None:
        if uid in self.pods:
            self.gang_attempts.pop(self.pods[uid].key, None)
            self.remove(uid)

    def wake_unit(self, key: str) -> None:
        for each in [each for each in self.pods.values() if each.key == key]:
            self._reconsider(each)

    def happened(self, event: ClusterEvent) -> None:
        for each in self.pods.values():
            if each.part == "in_flight":
                each.happened.append(event)
        for each in [p for p in self.pods.values() if p.part == "unschedulable" and self._is_helped(p, event)]:
            if each.part == "unschedulable":
                self._wake(each)

    def tick(self) -> None:
        for each in list(self.pods.values()):
            if (each.part == "backoff" and self._until(each) <= self.now) or (
                each.part == "unschedulable" and each.flush <= self.now
            ):
                self._wake(each)

    def pop(self, most: int) -> list[str]:
        self.tick()
        active = [each for each in self.pods.values() if each.part == "active"]
        units: dict[tuple[str, int | None], list[SlowPod]] = {}
        for each in active:
            units.setdefault((each.key, None if each.is_gang else each.pod.priority), []).append(each)
        if not units:
            return []
        if self.takes_turns:
            taken = self._turn(list(units.values()), most)
        else:
            taken = _whole_or(most, min(units.values(), key=_by_priority))
        for each in taken:
            each.part, each.happened, each.is_changed = "in_flight", [], False
            each.attempts += 1
        if taken[0].is_gang:
            self.gang_attempts[taken[0].key] = self.gang_attempts.get(taken[0].key, 0) + 1
        return [each.pod.uid for each in taken]

    def _turn(self, units: list[list[SlowPod]], most: int) -> list[SlowPod]:
        """The flow that had the fewest pods; of it the first unit, those that wait longest, what is due, in turns."""
        self.turns += 1
        most = min(most, TakesTurns.MOST)
        name = min((_flow(unit) for unit in units), key=lambda name: (self.taken.get(name, 0), name))
        units = [unit for unit in units if _flow(unit) == name]
        due = [unit for unit in units if _due(unit) < math.inf]
        longest = sorted((each for unit in units for each in unit), key=lambda each: (each.waits_since, each.number))
        if self.turns % 2 and due:
            taken = _whole_or(most, min(due, key=lambda u: (_by_priority(u)[0], _due(u))))
        elif self.turns % 3:
            unit = next(unit for unit in units if longest[0] in unit)
            own = list(itertools.takewhile(lambda each: each in unit, longest))
            taken = unit if unit[0].is_gang else own[:most]
        else:
            taken = _whole_or(most, min(units, key=_by_priority))
        self.taken[name] = self.taken.get(name, 0) + len(taken)
        return taken

    def back(self, uids: Sequence[str], by: frozenset[str] | None) -> None:
        """by: None = failed."""
        pods = [self.pods[uid] for uid in uids if uid in self.pods and self.pods[uid].part == "in_flight"]
        for group in [[each] for each in pods if not each.is_gang] + [[p for p in pods if p.is_gang]]:
            if group:
                self._back(group, by)

    def _back(self, group: list[SlowPod], by: frozenset[str] | None) -> None:
        first = group[0]
        attempts = max(1, self.gang_attempts.get(first.key, 0)) if first.is_gang else first.attempts
        until = self.now + min(self.options.backoff_initial * 2 ** (attempts - 1), self.options.backoff_longest)
        self.gang_until[first.key] = first.until = until
        for each in group:
            each.by, each.waits_since = by or frozenset(), self.now
        is_awake = by is None or any(
            each.is_changed or any(self._is_helped(each, event) for event in each.happened) for each in group
        )
        others = [each for each in self._gang(first) if each.part in _WAITING]
        is_awake = is_awake or any(each.part != "unschedulable" for each in others)
        for each in group:
            each.part = "" if by is None or self.gate(each.pod) else "gated"
        for each in [each for each in group if each.part != "gated"] + others:
            each.part = "unschedulable" if not is_awake else "backoff" if until > self.now else "active"
            each.flush = self.now + self.options.unschedulable_flush

    def _admit(self, new: SlowPod) -> None:
        if not self.gate(new.pod):
            new.part = "gated"
            return
        for each in self._gang(new):
            each.is_changed = True
            if each.part == "gated" and self.gate(each.pod):
                self._wake(each)
        self._wake(new)

    def _reconsider(self, each: SlowPod) -> None:
        if each.part == "in_flight":
            each.is_changed = True
        elif not self.gate(each.pod):
            each.part = "gated"
        elif each.part in ("gated", "unschedulable"):
            self._wake(each)

    def _wake(self, woken: SlowPod) -> None:
        part = "backoff" if self._until(woken) > self.now else "active"
        for each in [woken, *(each for each in self._gang(woken) if each.part in _WAITING)]:
            if each.part == "gated":
                each.waits_since = self.now
            each.part = part

    def _is_helped(self, each: SlowPod, event: ClusterEvent) -> bool:
        return not each.by or event.kind is EventKind.TIMEOUT or any(self.helps(by, each.pod, event) for by in each.by)

    def _until(self, each: SlowPod) -> float:
        return self.gang_until.get(each.key, 0.0) if each.is_gang else each.until

    def _gang(self, of: SlowPod) -> list[SlowPod]:
        return [each for each in self.pods.values() if of.is_gang and each.is_gang and each.key == of.key]


def _whole_or(most: int, unit: list[SlowPod]) -> list[SlowPod]:
    return unit if unit[0].is_gang else unit[:most]


def _by_priority(unit: list[SlowPod]) -> tuple[float, float, str]:
    return (-max(each.pod.priority for each in unit), unit[0].arrived, unit[0].key)


def _flow(unit: list[SlowPod]) -> str:
    return unit[0].pod.labels.get("flow", "")


def _due(unit: list[SlowPod]) -> float:
    return min(float(each.pod.labels.get("due", math.inf)) for each in unit)


# The log is short, so that it runs over; what was forgotten wakes, which the model is told by `is_changed`.
_OPTIONS = with_constants(QueueOptions(), most_events=5)
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
        self.in_hand: list[list[QueuedPodInfo]] = []

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
        self.world.after(_OPTIONS.backoff_longest)
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
