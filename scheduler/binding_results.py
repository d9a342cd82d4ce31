"""What becomes of pods that were given a node: bound, released, or asked about until it is known.

    decided --bind--> BindingCycles --bound-------> assumed until the watch shows it
                                    |---failed----> released; to the backoff
                                    +---not known-> stays assumed; asked about soon
    overdue (scheduler/binding/assumptions.py) --ask_about-->  bound: kept, the watch lags
                                                   not bound: released, queued anew
                                                   not known: asked about again soon
    the watch shows it before the answer --apply-> bound there: reported as bound
                                                   gone, or bound elsewhere: forgotten

A pod is asked about only while nothing of ours is under way for it, and one question at a time; an answer counts only
if the pod is still assumed where it was asked about.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange, one_by_one
from kube.objects.objects import PodInfo
from scheduler.binding.assumptions import Assumptions
from scheduler.binding.binding_cycles import BindingCycles
from scheduler.binding.outcome import BindingOutcome, Ending, Reserved
from scheduler.queue.queued_pods import QueuedPodInfo
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue_events import ClusterFollower
from scheduler.scheduling_metrics import AttemptResult, SchedulingMetrics
from scorer.scorer import Scorer

logger = logging.getLogger(__name__)


class Telling(Protocol):
    """Reports pods to users: scheduler.pod_reports.Reports."""

    def failed(self, pod: PodInfo, message: str, *, reason: str = "Unschedulable") -> None:
        """An attempt failed, or there was none."""

    def paused(self, pod: PodInfo, message: str, *, by: str) -> None:
        """A gate, a plugin of this name, has it wait by choice."""

    def scheduled(self, pod: PodInfo, node: str) -> None:
        """It is bound."""

    def forget(self, uid: str) -> None:
        """It is gone, or about to be bound."""


@dataclass(frozen=True, slots=True)
class _NotKnown:
    """A pod whose binding to `node` ended without an answer, at `since`."""

    queued: QueuedPodInfo
    node: str
    since: float


class BindingResults(NodesAndPodsOnly):
    """For any thread: a thread of the bindings reports outcomes.

    Implements cluster.follower.Follower, to be attached before the ClusterFollower: the queue still knows the pod then.
    """

    def __init__(
        self,
        scorer: Scorer,
        queue: SchedulingQueue,
        follower: ClusterFollower,
        assumptions: Assumptions,
        bindings: BindingCycles,
        *,
        telling: Telling,
        metrics: SchedulingMetrics,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._scorer, self._queue, self._follower = scorer, queue, follower
        self._assumptions, self._bindings = assumptions, bindings
        self._telling, self._metrics, self._clock = telling, metrics, clock
        self._lock = threading.Lock()
        self._under_way: dict[str, QueuedPodInfo] = {}  # being bound
        self._not_known: dict[str, _NotKnown] = {}
        self._asked: set[str] = set()

    @property
    def unfinished(self) -> int:
        """Pods whose binding has not ended."""
        return self._bindings.unfinished

    @property
    def until(self) -> float:
        """Until when a pod that is given a node now is assumed."""
        return self._assumptions.until

    def knows(self, uid: str) -> bool:
        """Whether something of ours is under way for a pod."""
        with self._lock:
            return uid in self._under_way or uid in self._not_known

    def bind(self, placed: Sequence[tuple[QueuedPodInfo, str]]) -> None:
        """Bind these; they are assumed."""
        with self._lock:
            for queued, _ in placed:
                self._under_way[queued.pod.uid] = queued
        for queued, _ in placed:
            self._telling.forget(queued.pod.uid)  # no condition may come after its binding
        try:
            self._bindings.start([Reserved(queued.pod, node) for queued, node in placed], self._bound)
        except Exception:
            logger.exception("bindings could not be started")
            for queued, node in placed:
                self._bound(
                    Reserved(queued.pod, node), BindingOutcome(Ending.FAILED, "its binding could not be started")
                )

    def give_back(self, pods: Sequence[PodInfo]) -> None:
        """They are on no node."""
        with self._scorer.tables.changing():
            for pod in pods:
                self._assumptions.forget(pod.uid)

    def ask_about(self, reserved: Sequence[Reserved]) -> None:
        """Find out what became of pods that should have been seen by now. Under the lock of the tables."""
        for one in reserved:
            uid = one.pod.uid
            with self._lock:
                if uid in self._under_way or uid in self._asked:
                    continue  # its outcome will come
                self._asked.add(uid)
                is_not_known = uid in self._not_known
            if is_not_known:
                logger.info("the binding of a pod got no answer: the API server is asked", extra={"pod": one.pod.name})
            else:
                logger.warning("a pod is not seen on its node: the API server is asked", extra={"pod": one.pod.name})
            self._bindings.ask(one, self._looked)

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        """Report pods whose binding got no answer and that the watch now shows on their node."""
        if not self._not_known:
            return
        uids = {change.pod.uid for change in one_by_one(changes) if isinstance(change, PodChange)}
        self._look_at(uids)

    def rebuild(self) -> None:
        """The same for all of them: the tables could not follow a change."""
        self._look_at(self._not_known)

    def _look_at(self, uids: Collection[str]) -> None:
        """Pods among these that are not assumed any more are not asked about, so what the watch shows is the answer."""
        with self._scorer.tables.reading() as cluster:
            state = cluster.state
            with self._lock:
                known = [uid for uid in uids if uid in self._not_known and uid not in cluster.assumed]
                answered = {uid: self._not_known.pop(uid) for uid in known}
            for uid, before in answered.items():
                pod = state.pods.get(uid)
                if pod is not None and pod.node == before.node:
                    self._is_bound(Reserved(pod, before.node), before.queued)

    # Called by the thread of the bindings

    def _bound(self, reserved: Reserved, outcome: BindingOutcome) -> None:
        uid = reserved.pod.uid
        with self._lock:
            queued = self._under_way.pop(uid, None)
        self._settle(reserved, outcome, None if queued is None else _NotKnown(queued, reserved.node, self._clock()))

    def _looked(self, reserved: Reserved, outcome: BindingOutcome) -> None:
        uid = reserved.pod.uid
        # In one piece: a pod that the watch shows in between would be reported neither here nor by `apply`.
        with self._scorer.tables.reading() as cluster:
            with self._lock:
                self._asked.discard(uid)
                if uid in self._under_way:
                    return  # it was given a node anew meanwhile
                before = self._not_known.get(uid)
            seat, state = cluster.state.seat_of.get(uid), cluster.state
            if uid not in cluster.assumed or seat is None or state.names[seat.node] != reserved.node:
                return  # the watch was faster, see `apply`
            with self._lock:
                self._not_known.pop(uid, None)
        if outcome.ending is Ending.UNKNOWN:
            extra = {"pod": reserved.pod.name, "why": outcome.reason}
            logger.warning("the state of a pod is unknown: the API server is asked again", extra=extra)
        self._settle(reserved, outcome, before)

    def _settle(self, reserved: Reserved, outcome: BindingOutcome, before: _NotKnown | None) -> None:
        """before: outcome until now; None = it had been reported as bound, or was never ours to bind."""
        uid, queued = reserved.pod.uid, None if before is None else before.queued
        if outcome.is_bound:
            with self._scorer.tables.reading():
                self._assumptions.keep(uid)
            self._is_bound(reserved, queued)
        elif outcome.ending is Ending.UNKNOWN:
            with self._scorer.tables.reading():
                if before is None:
                    self._assumptions.keep(uid)
                    return
                with self._lock:
                    self._not_known[uid] = before
                self._assumptions.ask_soon(uid, since=before.since)
                self._look_at([uid])  # the watch may have been faster
        else:
            self._not_bound(reserved, outcome, queued)

    def _is_bound(self, reserved: Reserved, queued: QueuedPodInfo | None) -> None:
        """Report it: event, latency and attempt. queued: None = the attempt was not ours, or is counted already."""
        self._queue.done(reserved.pod.uid)
        self._telling.scheduled(reserved.pod, reserved.node)
        if queued is not None:
            self._metrics.bound(self._queue.now() - queued.first_seen, reserved.pod.scheduler_name)
            self._metrics.attempt(AttemptResult.SCHEDULED, reserved.pod.scheduler_name)

    def _not_bound(self, reserved: Reserved, outcome: BindingOutcome, queued: QueuedPodInfo | None) -> None:
        pod, uid = reserved.pod, reserved.pod.uid
        self.give_back([pod])
        if outcome.is_gone or outcome.is_elsewhere:
            self._queue.remove(uid)
            self._telling.forget(uid)
            return
        self._metrics.attempt(AttemptResult.ERROR, pod.scheduler_name)
        self._telling.failed(pod, outcome.reason, reason="SchedulerError")
        with self._scorer.tables.reading() as cluster:
            if queued is not None:
                self._queue.failed([queued])
            # One that the queue has forgotten, or never knew: it was assumed when this process began to follow it.
            known = cluster.state.pods.get(uid)
            if known is not None and self._follower.is_to_be_placed(known):
                self._queue.put(known)
