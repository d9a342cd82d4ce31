"""All reports to users about a pod: conditions while it waits, events when something happens, and in the log only for a
dry run.

Some a second at most: in a burst of thousands of pods each event would cost the API server as much as a binding.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from kube.events.event_recorder import EventRecorder, Post, session_post
from kube.objects.objects import PodInfo
from kube.objects.pod_shape import on_node
from kube.session.api_session import ApiSession
from kube.status.pod_condition_writer import ConditionWriter
from kube.status.pod_conditions import LastReported, WaitingCondition
from placement.decisions.recorder import DecisionRecorder

_AGAIN_AFTER_SECONDS: Final = 300.0
_MOST_PODS: Final = 20_000

logger = logging.getLogger(__name__)
_LOGGED_REPORTS_AGAIN_AFTER_SECONDS: Final = 300.0


class SchedulingEvents(EventRecorder):
    """For any thread; posts in its own. The rate is that of each reason."""

    def __init__(self, post: Post, *, instance: str, clock: Callable[[], float] = time.time) -> None:
        super().__init__(
            post, what="scheduling", instance=instance, rate=25.0, burst=100.0, max_waiting=1_000, clock=clock
        )
        self._last_lock = threading.Lock()
        self._last = LastReported(_MOST_PODS, again_after=_AGAIN_AFTER_SECONDS)

    def scheduled(self, pod: PodInfo, node: str) -> None:
        """The pod is bound."""
        self.record(
            pod,
            "Scheduled",
            lambda: f"Successfully assigned {pod.namespace}/{pod.name} to {node}",
            is_warning=False,
            bucket="Scheduled",
            controller=pod.scheduler_name,
            action="Binding",
        )

    def failed(self, pod: PodInfo, message: str) -> None:
        """An attempt failed. The same message is posted again after five minutes."""
        now, reason = self.clock(), "FailedScheduling"
        with self._last_lock:
            if self._last.is_news(pod.uid, message, now) and self.record(
                pod, reason, message, at=now, bucket=reason, controller=pod.scheduler_name
            ):
                self._last.note(pod.uid, message, now)

    def preempted(self, pod: PodInfo, note: str) -> None:
        """The pod was evicted for another; note: which, and where."""
        by, reason = pod.scheduler_name, "Preempted"
        self.record(pod, reason, note, is_warning=False, bucket=reason, controller=by, action="Preempting")

    def forget(self, uid: str) -> None:
        """The pod waits no more."""
        with self._last_lock:
            self._last.forget(uid)


class LoopReports:
    """Reports to users about pods, by any thread and without waiting: none, but for what a subclass reports."""

    def start(self) -> None:
        """Begin. Once only."""

    def stop(self) -> None:
        """End."""

    def failed(self, pod: PodInfo, message: str, *, reason: str = "Unschedulable") -> None:
        """An attempt failed: no node (Unschedulable), or an error (SchedulerError)."""

    def paused(self, pod: PodInfo, message: str, *, by: str) -> None:
        """A gate, a plugin of this name, has it wait by choice."""

    def scheduled(self, pod: PodInfo, node: str) -> None:
        """It is bound."""

    def preempted(self, pod: PodInfo, note: str) -> None:
        """It was evicted for another pod."""

    def forget(self, uid: str) -> None:
        """It is gone, or about to be bound."""


class Reports(LoopReports):
    """To be started after the session, and stopped before it."""

    def __init__(self, session: ApiSession, *, instance: str, decisions: DecisionRecorder | None = None) -> None:
        """
        instance  : name of this replica, as events show it
        decisions : notified of each pod that is bound, and where
        """
        self._decisions = decisions
        self.conditions = ConditionWriter(session)
        self.events = SchedulingEvents(session_post(session), instance=instance)

    def start(self) -> None:
        self.conditions.start()
        self.events.start()

    def stop(self) -> None:
        """End; events that wait have two seconds."""
        self.conditions.stop()
        self.events.stop()

    def failed(self, pod: PodInfo, message: str, *, reason: str = "Unschedulable") -> None:
        self.conditions.put(WaitingCondition.of(pod, reason, message))
        self.events.failed(pod, message)

    def paused(self, pod: PodInfo, message: str, *, by: str) -> None:
        """The condition is WaitingForValley. No event: nothing went wrong.

        Not Unschedulable, by which autoscalers know pods that want more nodes.
        """
        self.conditions.put(WaitingCondition.of(pod, f"WaitingFor{by}", message))

    def scheduled(self, pod: PodInfo, node: str) -> None:
        """The API server itself sets the condition PodScheduled=True then."""
        self.forget(pod.uid)
        self.events.scheduled(pod, node)
        if self._decisions is not None:
            self._decisions.bound(on_node(pod, node))

    def preempted(self, pod: PodInfo, note: str) -> None:
        self.events.preempted(pod, note)

    def forget(self, uid: str) -> None:
        self.conditions.forget(uid)
        self.events.forget(uid)


class LoggedReports(LoopReports):
    """In place of Reports, for a dry run. clock: unix seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._told = LastReported(_MOST_PODS, again_after=_LOGGED_REPORTS_AGAIN_AFTER_SECONDS)

    def failed(self, pod: PodInfo, message: str, *, reason: str = "Unschedulable") -> None:
        now = self._clock()
        with self._lock:
            is_news = self._told.is_news(pod.uid, message, now)
            if is_news:
                self._told.note(pod.uid, message, now)
        level = logging.INFO if is_news else logging.DEBUG
        logger.log(level, "would wait", extra={"pod": _name(pod), "reason": reason, "why": message})

    def paused(self, pod: PodInfo, message: str, *, by: str) -> None:
        self.failed(pod, message, reason=f"WaitingFor{by}")

    def scheduled(self, pod: PodInfo, node: str) -> None:
        self.forget(pod.uid)

    def preempted(self, pod: PodInfo, note: str) -> None:
        logger.info("would be evicted", extra={"pod": _name(pod), "why": note})

    def forget(self, uid: str) -> None:
        with self._lock:
            self._told.forget(uid)


def _name(pod: PodInfo) -> str:
    return f"{pod.namespace}/{pod.name}"
