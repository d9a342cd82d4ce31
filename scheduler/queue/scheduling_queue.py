"""The queue of pods that wait for a node, for all profiles of a process.

                  put                                    pop
     (new pod) --------> gate --yes--> ACTIVE ---------------------> IN FLIGHT --done--> (forgotten)
                          | no          ^  ^                          |     |
                          v             |  | backoff is over          |     | rejected, or failed:
                        GATED --yes-----+  |                          |     | an error, or something
         asked again when the pod, its  |  |                          |     | that helps came meanwhile
         group or who is in it changes  |  +-------- BACKOFF <--------|-----+
                                        |              ^              | rejected, and nothing helps
                                        | over already | not yet over |
                                        +------+-------+              v
                                               +-------------- UNSCHEDULABLE
                           an event that helps, its own change, or 5 minutes

`remove` takes a pod out of any part. Semantics are those of kube-scheduler (pkg/scheduler/backend/queue) with queueing
hints (KEP-4247), except that units are popped, not pods (queued_pods.py), and that nothing is popped out of the backoff
early (KEP-5142). What is gated, backs off or is popped of a gang is the gang: its members that wait are always in one
part.

Locks: the queue has its own, and asks gate, units and hints under it: in `put`, `happened`, `wake_units` and
`rejected`, which must be called under the lock of the tables if a plugin reads what that guards; elsewhere none is
asked. A plugin must neither wait for the lock of the tables nor call the queue.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from base.backoff import Backoff
from cluster.monotonic_time import MonotonicTime
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from placement.plugins import EnqueueExtensions, FlowOrder, QueueSort
from placement.status import SUCCESS, Code, Status
from scheduler.loop_settings import QueueOptions
from scheduler.queue.plugin_calls import PluginCalls
from scheduler.queue.queue_parts import Parts, UnitTable
from scheduler.queue.queued_pods import WAITING, Part, Popped, QueuedPodInfo, Unit, Units, WaitingPod
from scheduler.queue.unschedulable import likeness, matters

# Why pods move; events come under their own names.
_ADDED: Final = "PodAdd"
_CHANGED: Final = "PodUpdate"
_ATTEMPT_FAILED: Final = "ScheduleAttemptFailure"
_BACKOFF_OVER: Final = "BackoffComplete"
_BECAUSE: Final = {kind: "".join(word.title() for word in kind.name.split("_")) for kind in EventKind}

_LEAST_WAIT: Final = 0.001  # seconds: a timer that is due within less is not worth a round of its own
_LONGEST_WAIT: Final = 60.0  # seconds: then look again, which also lets callers wait for ever


class SchedulingQueue:
    """For any thread. The caller of `put` has made sure that the pod is ours, and neither bound nor assumed."""

    def __init__(
        self,
        *,
        sort: QueueSort,
        gate: Callable[[PodInfo], Status],
        hints: Callable[[PodInfo], Mapping[str, EnqueueExtensions]],
        units: Units,
        options: QueueOptions,
        clock: Callable[[], float],
        steady: Callable[[], float] | None = None,
        flows: FlowOrder | None = None,
    ) -> None:
        """
        gate  : what all PreEnqueue plugins say. WAIT with `wait_seconds` = no, but yes after that if not asked before
        hints : by name, of the plugins that may reject the pod; clock: unix seconds
        steady: seconds that pass evenly however the clock jumps; None = those of `clock`
        flows : whose turn it is; None = all units are sorted as one flow
        """
        self._options, self._time, self._table = options, MonotonicTime(clock, steady), UnitTable(units)
        self._backoff = Backoff(options.backoff_initial, options.backoff_longest)  # calculateBackoffDuration upstream
        self._asking = PluginCalls(gate, hints)
        self._parts = Parts(sort, self._asking, options.most_events, flows)
        self._pods: dict[str, QueuedPodInfo] = {}
        self._n_seen = 0
        self._changed = threading.Condition(threading.Lock())
        self._is_awaited = self._is_closed = False

    # what comes from the API server

    def put(self, pod: PodInfo) -> None:
        """A waiting pod of ours is new or has changed; also while it is in flight."""
        with self._changed:
            queued = self._pods.get(pod.uid)
            if queued is not None:
                self._update(queued, pod)
                return
            now = self._time.now()
            self._n_seen += 1
            queued = QueuedPodInfo(pod, "", self._time.unix(now), first_seen=now, number=self._n_seen)
            self._table.join(queued)
            self._pods[pod.uid] = queued
            self._admit(queued, _ADDED, now)

    def remove(self, uid: str) -> None:
        """Remove a pod that is gone, bound, or no longer ours."""
        with self._changed:
            queued = self._pods.get(uid)
            if queued is not None:
                self._forget(queued)

    def happened(self, event: ClusterEvent) -> None:
        """Wake the pods that the event may help: unschedulable pods whose plugins say so, and the pod it is about.

        TIMEOUT wakes every pod, and asks all gates again.
        """
        with self._changed:
            now, because = self._time.now(), _BECAUSE[event.kind]
            if event.kind is EventKind.UNSCHEDULED_POD_CHANGED:
                queued = self._pods.get(event.pod.uid) if event.pod is not None else None
                if queued is not None:
                    self._reconsider([queued], because, now)
                return
            self._parts.in_flight.record(event)
            if event.kind is EventKind.GROUP_CHANGED:
                self._wake_key(event.group, because, now)
            if event.kind is EventKind.TIMEOUT:
                self._reconsider([queued for queued in self._pods.values() if queued.part is Part.GATED], because, now)
                cohorts = list(self._parts.unschedulable)
            else:
                cohorts = self._parts.unschedulable.woken_by(event)
            for cohort in cohorts:
                for queued in list(cohort.pods):
                    if queued.part is Part.UNSCHEDULABLE:  # not moved by another one of its gang
                        self._wake(queued, because, now)

    def wake_units(self, keys: Iterable[str]) -> None:
        """Ask the gate again about units that changed, and try again those that pass."""
        with self._changed:
            now = self._time.now()
            for key in keys:
                self._wake_key(key, _BECAUSE[EventKind.GROUP_CHANGED], now)

    # the scheduling loop

    def pop(self, *, most: int, wait_seconds: float) -> Popped | None:
        """The first `most` active pods of the unit whose turn it is, or a gang whole. Blocks for `wait_seconds` at
        most.
        """
        deadline = time.monotonic() + wait_seconds
        with self._changed:
            while not self._is_closed:
                now = self._time.now()
                self._tick(now)
                if (first := self._parts.take_off(max(1, most), now)) is not None:
                    unit, pods = first
                    return Popped(unit.key, unit.is_gang, tuple(pods))
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                if (timer := self._parts.timers.first()) is not None:
                    left = min(left, max(timer[0][0] - now, _LEAST_WAIT))
                # Set once by the part that makes a pod active; the flag spares all others the call.
                self._is_awaited = True
                self._changed.wait(min(left, _LONGEST_WAIT))
            return None

    def coming(self, most: int) -> list[PodInfo]:
        """Return a pod of each of the units that are popped next, as far as can be said: `most` of them at most."""
        with self._changed:
            return self._parts.active.coming(most)

    def rejected(self, pods: Sequence[QueuedPodInfo], by: frozenset[str], message: str) -> None:
        """Take back pods without a node: as unschedulable, or into the backoff if an event since the pop may help.

        by : plugins that rejected nodes; none = unknown what helps, every event wakes
        """
        with self._changed:
            now = self._time.now()
            heard: dict[object, bool] = {}
            for together in self._returned(pods):
                for queued in together:
                    queued.rejected_by, queued.message, queued.waits_since = by, message, now
                is_awake = any(self._is_to_be_tried(queued, heard) for queued in together)
                until = self._back_off(together[0], now)
                passing = self._passing(together, _ATTEMPT_FAILED, now)
                self._come_back(together[0].home, passing, until, now, is_awake=is_awake)

    def returned(self, pods: Sequence[QueuedPodInfo]) -> None:
        """They were not looked at: active again, without a backoff, as if they had not been popped."""
        with self._changed:
            now = self._time.now()
            for together in self._returned(pods):
                unit, together[0].attempts = together[0].home, together[0].attempts - 1  # a gang is looked at whole
                self._parts.active.given_back(unit, len(together))
                self._come_back(unit, together, now, now, is_awake=True)

    def failed(self, pods: Sequence[QueuedPodInfo]) -> None:
        """An error, of binding for instance: to backoff."""
        with self._changed:
            now = self._time.now()
            for together in self._returned(pods):
                for queued in together:
                    queued.rejected_by, queued.waits_since = frozenset(), now
                until = self._back_off(together[0], now)
                self._come_back(together[0].home, together, until, now, is_awake=True)

    def done(self, uid: str) -> None:
        """Forget a pod that is bound."""
        with self._changed:
            queued = self._pods.get(uid)
            if queued is not None:
                queued.home.attempts = 0
                self._forget(queued)

    def tick(self) -> None:
        """Move those on whose time has come."""
        with self._changed:
            self._tick(self._time.now())

    def close(self) -> None:
        """`pop` returns None from now on."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    # what there is

    def lengths(self) -> dict[str, int]:
        """Pods by part: active, backoff, unschedulable, gated."""
        with self._changed:
            lengths = self._parts.lengths
            return {part.value: lengths[part] for part in Part if part in WAITING or part is Part.GATED}

    @property
    def in_flight(self) -> int:
        """Pods that were popped and are not back, bound or gone yet."""
        return self._parts.lengths[Part.IN_FLIGHT]

    def incoming(self) -> dict[tuple[str, str], int]:
        """How many pods came into a part since the start, by (event, part)."""
        with self._changed:
            return {(because, part.value): n for (because, part), n in self._parts.incoming.items()}

    def waiting(self) -> list[WaitingPod]:
        """All pods as they are now, in flight too, in the order in which they arrived."""
        with self._changed:
            ahead = self._time.unix(0.0)
            return [WaitingPod.of(queued, ahead) for queued in self._pods.values()]

    def now(self) -> float:
        """The queue's own time (cluster/monotonic_time.py), which a wall clock that jumps does not change."""
        with self._changed:
            return self._time.now()

    # towards active

    def _forget(self, queued: QueuedPodInfo) -> None:
        self._parts.leave(queued)
        self._table.quit(queued)
        del self._pods[queued.pod.uid]

    def _admit(self, queued: QueuedPodInfo, because: str, now: float) -> None:
        """A pod that is in no part: new, or of another unit than before."""
        unit, status = queued.home, self._asking.gate(queued.pod)
        if status is not SUCCESS and not status.is_success:
            self._keep_out(queued, status, because, now)
            return
        if unit.is_gang:
            # It may be the one that the others waited for: gated, unschedulable or in flight.
            unit.version += 1
            if unit.n_gated:
                for member in [*self._passing(unit.in_part(Part.GATED), because, now), *unit.paused()]:
                    self._wake(member, because, now)
        self._wake(queued, because, now)

    def _passing(self, asked: Iterable[QueuedPodInfo], because: str, now: float) -> list[QueuedPodInfo]:
        """Those that the gate lets through, and with them what only pauses of their gangs; the others are gated."""
        passing: list[QueuedPodInfo] = []
        for queued in asked:
            status = self._asking.gate(queued.pod)
            if status.is_success:
                passing.append(queued)
            else:
                self._keep_out(queued, status, because, now)
        for unit in {queued.home: None for queued in passing if queued.home.n_gated}:
            passing += unit.paused()
        return list(dict.fromkeys(passing))

    def _keep_out(self, queued: QueuedPodInfo, status: Status, because: str, now: float) -> None:
        queued.rejected_by, queued.message = frozenset((status.plugin,)), status.reason
        due = now + status.wait_seconds if status.code is Code.WAIT and status.wait_seconds > 0 else None
        if queued.part is Part.GATED:
            self._parts.set_timer(queued, due)
        else:
            self._parts.move(queued, Part.GATED, because, now, due=due)
        self._tell()

    def _wake(self, queued: QueuedPodInfo, because: str, now: float) -> None:
        """It may be tried again as soon as it does not back off any more; with it, what waits of its gang."""
        unit, together, until = queued.home, [queued], queued.until
        if queued.part is Part.GATED:
            queued.rejected_by, queued.message = frozenset(), ""
        if unit.is_gang:
            until = unit.until
            if not unit.active:  # else what waits of it is active already
                together = [member for member in unit.members.values() if member.part in WAITING or member is queued]
        part = Part.BACKOFF if until > now else Part.ACTIVE
        for each in together:
            if each.part is not part:
                self._parts.move(each, part, because, now, due=until)
        self._tell()

    def _tick(self, now: float) -> None:
        timers, timeout = self._parts.timers, _BECAUSE[EventKind.TIMEOUT]
        while (first := timers.first()) is not None and first[0][0] <= now:
            queued = first[1]
            if queued.part is Part.GATED and queued.home.is_gang:
                for member in queued.home.paused():
                    self._wake(member, timeout, now)
                continue
            self._wake(queued, _BACKOFF_OVER if queued.part is Part.BACKOFF else timeout, now)

    def _tell(self) -> None:
        if self._is_awaited:
            self._is_awaited = False
            self._changed.notify_all()

    # changes

    def _update(self, queued: QueuedPodInfo, pod: PodInfo) -> None:
        before, queued.pod = queued.pod, pod
        if matters(before, pod):
            self._reconsider([queued], _CHANGED, self._time.now())
        elif queued.part is Part.UNSCHEDULABLE and before.nominated_node != pod.nominated_node:
            # Not worth an attempt, but it is not like the others of its cohort any more.
            self._parts.unschedulable.discard(queued)
            self._parts.unschedulable.add(queued)

    def _wake_key(self, key: str, because: str, now: float) -> None:
        for unit in self._table.of_key(key):
            self._reconsider(list(unit.members.values()), because, now)

    def _reconsider(self, pods: Collection[QueuedPodInfo], because: str, now: float) -> None:
        """They, or what they wait for, changed: which unit, whether the gate lets them, and try them again."""
        here: list[QueuedPodInfo] = []
        for queued in pods:
            left = self._table.ask_again(queued)
            if queued.part is Part.IN_FLIGHT:
                queued.changed = True
            elif left is None:
                here.append(queued)
            else:
                self._parts.leave(queued, left)
                self._admit(queued, because, now)
        passing = self._passing(here, because, now)
        for queued in passing:
            if queued.part is Part.UNSCHEDULABLE or queued.part is Part.GATED:
                self._wake(queued, because, now)
        for unit in {queued.home for queued in passing if queued.part is Part.ACTIVE}:
            self._parts.active.replace(unit)

    # back from an attempt

    def _returned(self, pods: Iterable[QueuedPodInfo]) -> Iterable[list[QueuedPodInfo]]:
        """Those that are in flight still, members of a gang together."""
        by_gang: dict[Unit, list[QueuedPodInfo]] = {}
        for queued in pods:
            if queued.part is not Part.IN_FLIGHT or self._pods.get(queued.pod.uid) is not queued:
                continue
            if queued.home.is_gang:
                by_gang.setdefault(queued.home, []).append(queued)
            else:
                yield [queued]
        yield from by_gang.values()

    def _is_to_be_tried(self, queued: QueuedPodInfo, heard: dict[object, bool]) -> bool:
        """Whether something that happened in flight helps. heard: answers for pods like it that were popped with it."""
        if queued.changed or queued.version != queued.home.version or queued.mark is None:
            return True
        events = self._parts.in_flight.since(queued.mark)
        if not events:
            return events is None
        key = (queued.mark, likeness(queued.pod))
        answer = heard.get(key)
        if answer is None:
            questions = self._asking.questions(queued.pod, queued.rejected_by)
            answer = any(self._asking.wakes(queued.pod, questions, event) for event in events)
            heard[key] = answer
        return answer

    def _back_off(self, queued: QueuedPodInfo, now: float) -> float:
        """From now on, it or its gang; until when."""
        unit = queued.home
        # Other members of a gang may have been placed meanwhile, which begins it anew.
        attempts = max(1, unit.attempts) if unit.is_gang else queued.attempts
        until = now + self._backoff.seconds(attempts)
        queued.until = unit.until = until
        return until

    def _come_back(
        self, unit: Unit, together: Sequence[QueuedPodInfo], until: float, now: float, *, is_awake: bool
    ) -> None:
        """Into backoff or unschedulable: one pod, or members of a gang and with them what waits of it."""
        if unit.is_gang:
            others = unit.in_part(*WAITING)
            is_awake = is_awake or any(other.part is not Part.UNSCHEDULABLE for other in others)
            together = [*together, *others]
        if is_awake:
            part, due = (Part.BACKOFF if until > now else Part.ACTIVE), until
        else:
            part, due = Part.UNSCHEDULABLE, now + self._options.unschedulable_flush
        for queued in together:
            self._parts.move(queued, part, _ATTEMPT_FAILED, now, due=due)
        self._tell()
