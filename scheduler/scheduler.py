"""The scheduling loop: pops units, lets the cycle decide under the lock of the tables, and acts on what it decided.

    queue --pop--> cycle --placed----> BindingCycles --> binding_results.py
      ^                 |--rejected--> queue, condition and event
      |                 +--unfinished> queue, at once
      +-------- events of the cluster (queue_events.py)

Decides only while `may_schedule`: the tables were read, and this replica leads. Nothing is kept outside the API
server that a restart would have to find again.
"""

from __future__ import annotations

import heapq
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from cluster.assuming_cluster import AssumingCluster
from kube.objects.objects import PodInfo
from kube.objects.pod_shape import on_node
from placement.cluster_events import ClusterEvent, EventKind
from placement.filters.filter import ClusterView
from scheduler.binding.in_flight_limit import Backpressure
from scheduler.binding_results import BindingResults, Telling
from scheduler.cycle.decisions import Decisions, NodeChoice, Rejected
from scheduler.cycle.placing import UnitPlacer
from scheduler.gangs.directory import GATE
from scheduler.queue.queued_pods import Part, Popped, QueuedPodInfo
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue_events import ClusterFollower
from scheduler.scheduling_metrics import AttemptResult, SchedulingMetrics
from scorer.scorer import Scorer

logger = logging.getLogger(__name__)

_IDLE_SECONDS: Final = 0.2
_LOOK_AROUND_SECONDS: Final = 15.0
_GATED_SECONDS: Final = 30.0
"""Seconds after which a gated pod gets a condition that says why: pods of a group rarely come all at once."""

_LOOK_AHEAD: Final = 15
"""Units for which tables are read together with those of the unit that is placed."""

_HELD_SECONDS: Final = 0.5
"""For which a pod is held back after its cycle, to be looked at with those of later ones."""

_BURST_PODS, _BURST_SECONDS = 4, 0.03
"""Pods that come faster than so many in so long are held back; what comes one by one must not wait for others."""

_LOST_SECONDS: Final = 60.0
"""Seconds after which a popped pod that is neither assumed nor being bound was lost by a mistake of ours."""


class Cycle(Protocol):
    """scheduler.cycle.cycle.SchedulingCycle, or scheduler.shards.sharded_cycle.ShardedCycle."""

    def run(self, popped: Popped, placer: UnitPlacer) -> Decisions:
        """Decide about a unit, under the lock of the tables."""


class Together(Protocol):
    """Looks once more at pods that several cycles have placed: advisor.exchanged_nodes.PlacedTogether."""

    def note(self, placed: Sequence[tuple[QueuedPodInfo, str]], placer: UnitPlacer) -> None:
        """A cycle has placed these, which are assumed and reserved; under the lock of the tables."""

    def question(self) -> Callable[[], object] | None:
        """What is to be found out about the pods noted so far, which are forgotten; under the lock. It is called
        without the lock. None = nothing."""

    def carry_out(self, answer: object, until: float) -> Mapping[str, str]:
        """Under the lock: assume and reserve pods at other nodes, which are returned by UID. until: unix seconds."""


Record = Callable[[AssumingCluster, Sequence[PodInfo], Mapping[str, NodeChoice], float], None]
"""(tables, pods placed, choices by UID, seconds of the cycle); called under the lock."""


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """
    batch        : most pods of a unit placed in one cycle; a gang is placed whole
    gather       : seconds between the first of two cycles and the second, if the queue was empty between them: what
                   comes meanwhile is placed together. A pod that comes after a pause does not wait
    most_unfinished : bindings that wait or are under way, see Backpressure
    together     : most pods that are held back after their cycles, to be looked at together
    """

    batch: int = 1024
    gather: float = 0.0
    most_unfinished: int = 4096
    together: int = 1


@dataclass(slots=True)
class _Held:
    """Pods whose cycles are over, and that are not bound yet.

    since   : by the stopwatch, when the first of them was placed
    seconds : that their cycles took
    """

    since: float
    placed: list[tuple[QueuedPodInfo, str]] = field(default_factory=list)
    choices: dict[str, NodeChoice] = field(default_factory=dict)
    seconds: float = 0.0


class Scheduler:
    """One thread that decides."""

    def __init__(
        self,
        scorer: Scorer,
        view: ClusterView,
        queue: SchedulingQueue,
        follower: ClusterFollower,
        cycle: Cycle,
        settling: BindingResults,
        *,
        telling: Telling,
        may_schedule: Callable[[], bool],
        policies: Callable[[], object] = lambda: None,
        record: Record = lambda cluster, placed, choices, seconds: None,
        together: Together | None = None,
        metrics: SchedulingMetrics,
        options: LoopOptions | None = None,
        clock: Callable[[], float] = time.time,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        """
        may_schedule : quick; asked before every unit
        policies     : another object whenever policies have changed
        record       : keeps why the pods of a cycle got their nodes
        together     : looks at pods of several cycles together; None = what a cycle has placed is bound at once
        """
        self._scorer, self._view = scorer, view
        self._queue, self._follower, self._cycle, self._settling = queue, follower, cycle, settling
        self._telling, self._may_schedule, self._policies, self._record = telling, may_schedule, policies, record
        self._metrics, self._options = metrics, options or LoopOptions()
        self._clock, self._stopwatch = clock, stopwatch
        self._popped_at = -math.inf  # by the stopwatch
        self._backpressure = Backpressure(self._options.most_unfinished)
        self._again: list[tuple[float, str]] = []  # pods to be looked at again at a time of the queue, a heap
        self._forecast: object = None
        self._policies_seen = policies()
        self._looked_around = clock()
        self._paused: set[str] = set()  # UIDs of pods with a report that they are
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scheduling", daemon=True)
        self._last_round: float | None = None  # by the stopwatch
        self._together = together if self._options.together > 1 else None
        self._held: _Held | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Decide no more; what was decided goes on."""
        self._stopping.set()
        self._queue.close()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def since_round(self) -> float | None:
        """Seconds since the loop last went round, idle or not; None = it has not begun."""
        return None if self._last_round is None else self._stopwatch() - self._last_round

    def tick(self) -> None:
        """Every second or so: backoffs that are over, another forecast, other policies, pods to be looked at again."""
        self._queue.tick()
        now = self._clock()
        with self._scorer.tables.reading() as cluster:
            predicted = cluster.predicted
            forecast = None if predicted is None else (id(predicted), predicted.horizon.today, predicted.horizon.slot)
            if forecast != self._forecast:
                self._forecast = forecast
                self._queue.happened(ClusterEvent(EventKind.FORECAST_CHANGED))
            if (policies := self._policies()) is not self._policies_seen:
                self._policies_seen = policies
                self._queue.happened(ClusterEvent(EventKind.TIMEOUT))  # whatever rejected them may be gone
            while self._again and self._again[0][0] <= self._queue.now():
                pod = cluster.state.pods.get(heapq.heappop(self._again)[1])
                if pod is not None:
                    self._queue.happened(ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=pod))
        if abs(now - self._looked_around) >= _LOOK_AROUND_SECONDS:
            self._looked_around = now
            self._look_around(now)

    def round(self) -> bool:
        """Pop one unit and deal with it; False = there was none."""
        began = self._stopwatch()
        popped = self._queue.pop(most=self._options.batch, wait_seconds=0.0)
        if popped is None and self._rests(began):
            began = self._stopwatch()
            popped = self._queue.pop(most=self._options.batch, wait_seconds=0.0)
        if popped is not None:
            self._metrics.observe_stage("pop", self._stopwatch() - began)
        elif self._held is not None:
            self._release_held()
            return True
        elif not self._stopping.is_set():
            popped = self._queue.pop(most=self._options.batch, wait_seconds=0.5)
        if popped is None:
            return False
        self._popped_at = self._stopwatch()
        self._decide(popped)
        return True

    # Inside

    def _rests(self, now: float) -> bool:
        """Wait for what comes soon after the last unit; False = that is long ago."""
        left = self._popped_at + self._options.gather - now
        return left > 0 and not self._stopping.wait(left)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._last_round = self._stopwatch()
            try:
                if not self._may_schedule():
                    self._release_held()
                    self._stopping.wait(_IDLE_SECONDS)
                elif self._is_behind() and not self._holds_more():
                    self._stopping.wait(0.005)
                else:
                    self.round()
            except Exception:
                logger.exception("a round of the scheduling loop failed")
                self._stopping.wait(_IDLE_SECONDS)

    def _decide(self, popped: Popped) -> None:
        began = self._stopwatch()
        times = self._metrics.cycle_times()
        try:
            with self._scorer.tables.changing() as cluster:
                with self._follower.trying():
                    placer = UnitPlacer(
                        self._view,
                        cluster,
                        self._scorer.tables.level()[0],
                        until=self._settling.until,
                        times=times,
                        coming=self._coming,
                        movable=None if self._together is None else {},
                    )
                    decisions = self._cycle.run(popped, placer)
                placed = [queued.pod for queued, _ in decisions.placed]
                # Before any client can delete one of them: the room that it frees has to be reported, too.
                self._follower.placed(placed)
                if self._together is None:
                    self._record(cluster, placed, placer.choices, self._stopwatch() - began)
                else:
                    self._together.note(decisions.placed, placer)
        except Exception as error:
            logger.exception("a scheduling cycle failed", extra={"unit": popped.key})
            self._give_up(popped, f"a scheduling cycle failed: {type(error).__name__}, the log says more")
            return
        seconds = self._stopwatch() - began
        self._metrics.observe_stage("cycle", seconds)
        self._metrics.observe_cycle(times)
        if self._together is not None:
            self._hold(decisions, placer, began, seconds)
        self._act(decisions)

    def _hold(self, decisions: Decisions, placer: UnitPlacer, began: float, seconds: float) -> None:
        """Keep back what is placed in a burst until there is enough of it, or nothing more waits."""
        if decisions.placed:
            held = self._held = self._held or _Held(began)
            held.placed += decisions.placed
            held.choices |= placer.choices
            held.seconds += seconds
            decisions.placed = []
        held_back = self._held
        if held_back is None:
            return
        since, n_placed = self._stopwatch() - held_back.since, len(held_back.placed)
        is_over = n_placed >= self._options.together or since >= _HELD_SECONDS or not self._is_burst(held_back)
        if is_over and not self._is_behind():
            self._release_held()

    def _is_behind(self) -> bool:
        """Whether what was decided is being carried out more slowly than pods come."""
        return self._backpressure.is_on(self._settling.unfinished)

    def _holds_more(self) -> bool:
        """Whether pods that would wait for their turn anyway are decided about meanwhile, to be looked at together."""
        n_held = 0 if self._held is None else len(self._held.placed)
        is_waited_for = self._queue.lengths()[Part.ACTIVE.value] > 0
        return self._together is not None and n_held < self._options.together and is_waited_for

    def _is_burst(self, held: _Held) -> bool:
        """Whether pods come fast, since the first of these came; a queue that has grown slowly is none."""
        seconds = self._queue.now() - min(queued.first_seen for queued, _ in held.placed)
        n_come = len(held.placed) + self._queue.lengths()[Part.ACTIVE.value]
        return seconds < _BURST_SECONDS or n_come >= _BURST_PODS * seconds / _BURST_SECONDS

    def _release_held(self) -> None:
        """Look at what was held back together, and bind it."""
        held, self._held = self._held, None
        if held is None or self._together is None:
            return
        try:
            moved = self._looked_at_together(held, self._together)
        except Exception:
            logger.exception("pods were not looked at together", extra={"pods": len(held.placed)})
            with self._scorer.tables.reading() as cluster:  # some may have moved
                seats, names = cluster.state.seat_of, cluster.state.names
                uids = [queued.pod.uid for queued, _ in held.placed]
                moved = {uid: names[seats[uid].node] for uid in uids if uid in cluster.assumed}
        self._settling.bind([(queued, moved.get(queued.pod.uid, node)) for queued, node in held.placed])

    def _looked_at_together(self, held: _Held, together: Together) -> Mapping[str, str]:
        began = self._stopwatch()
        with self._scorer.tables.reading():
            question = together.question()
        answer = None if question is None else question()
        with self._scorer.tables.changing() as cluster:
            moved = {} if answer is None else together.carry_out(answer, self._settling.until)
            rows = cluster.state.row_of
            for queued, node in held.placed:
                if (to := moved.get(queued.pod.uid)) is not None:
                    choice = held.choices[queued.pod.uid]
                    before = None if choice.total is None else (choice.row, choice.total)
                    held.choices[queued.pod.uid] = replace(choice, row=rows[to], total=None, runner_up=before)
                    self._queue.happened(ClusterEvent(EventKind.POD_LEFT, pod=on_node(queued.pod, node)))
            placed = [queued.pod for queued, _ in held.placed]
            self._record(cluster, placed, held.choices, held.seconds + self._stopwatch() - began)
        return moved

    def _coming(self) -> Sequence[PodInfo]:
        return self._queue.coming(_LOOK_AHEAD)

    def _give_up(self, popped: Popped, message: str) -> None:
        """It raised where no plugin was asked: nothing of the unit may stay where it is."""
        self._settling.give_back([queued.pod for queued in popped.pods])
        self._reject(Rejected(popped.pods, frozenset(), message))

    def _act(self, decisions: Decisions) -> None:
        for uid in decisions.gone:
            self._queue.remove(uid)
        if decisions.placed:
            self._settling.bind(decisions.placed)
        for rejected in decisions.rejected:
            self._reject(rejected)
        self._queue.returned(decisions.unfinished)
        if decisions.looked_for_victims:
            self._metrics.looked_for_victims(decisions.looked_for_victims)

    def _reject(self, rejected: Rejected) -> None:
        is_error = not rejected.by
        if not rejected.pods:
            return
        if not rejected.is_passed_on:
            result = AttemptResult.ERROR if is_error else AttemptResult.UNSCHEDULABLE
            self._metrics.attempt(result, rejected.pods[0].pod.scheduler_name, len(rejected.pods))
        if is_error:
            self._queue.failed(rejected.pods)
        else:
            with self._scorer.tables.reading():  # hints read what the lock guards
                self._queue.rejected(rejected.pods, rejected.by, rejected.message)
        for queued in rejected.pods:
            # Past the timeout of its gang the gate has closed, and its message names the timeout and the attempt.
            message = queued.message if GATE in queued.rejected_by else rejected.message
            if not rejected.is_passed_on:
                self._telling.failed(queued.pod, message, reason="SchedulerError" if is_error else "Unschedulable")
            if rejected.retry_seconds > 0:
                with self._scorer.tables.reading():  # under which they are taken
                    heapq.heappush(self._again, (self._queue.now() + rejected.retry_seconds, queued.pod.uid))

    def _look_around(self, now: float) -> None:
        """Report why pods are kept out of the queue, and find pods that were lost."""
        lost, paused = list[str](), set[str]()
        for one in self._queue.waiting():
            if one.part is Part.GATED and not one.pod.gates and now - one.arrived > _GATED_SECONDS:
                if not one.is_paused:
                    self._telling.failed(one.pod, one.message)
                    continue
                paused.add(one.uid)
                if one.uid not in self._paused:  # its gate may change its mind about when every ten seconds
                    self._telling.paused(one.pod, one.message, by=next(iter(one.rejected_by), ""))
            elif one.part is Part.IN_FLIGHT and now - one.since > _LOST_SECONDS:
                lost.append(one.uid)
        self._paused = paused
        for uid in lost:
            if self._settling.knows(uid):
                continue
            with self._scorer.tables.reading() as cluster:
                pod = cluster.state.pods.get(uid)
                if pod is None or not self._follower.is_to_be_placed(pod) or uid in cluster.assumed:
                    continue
                logger.error("a pod was lost between queue and binding, it is queued again", extra={"pod": pod.name})
                self._queue.remove(uid)
                self._queue.put(pod)
