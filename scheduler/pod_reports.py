"""All reports to users about a pod: conditions while it waits, events when something happens, and in the log only for a
dry run.

Some a second at most: in a burst of thousands of pods each event would cost the API server as much as a binding.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from kube.events.api_event import EventSource, api_event, pod_reference
from kube.events.event_recorder import EventRecorder, Post, session_post
from kube.objects.objects import PodInfo
from kube.objects.pod_shape import on_node
from kube.session.api_session import ApiSession
from kube.status.pod_condition_writer import ConditionWriter
from kube.status.pod_conditions import LastReported, WaitingCondition
from placement.decisions.recorder import DecisionRecorder

_AGAIN_AFTER_SECONDS: Final = 300.0
_MOST_PODS: Final = 20_000


class SchedulingEvents(EventRecorder):
    """For any thread; posts in its own. The rate is that of each reason."""

    def __init__(
        self,
        post: Post,
        *,
        instance: str,
        rate: float = 25.0,
        burst: float = 100.0,
        max_waiting: int = 1_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(
            post, what="scheduling", instance=instance, rate=rate, burst=burst, max_waiting=max_waiting, clock=clock
        )
        self._last_lock = threading.Lock()
        self._last = LastReported(_MOST_PODS, again_after=_AGAIN_AFTER_SECONDS)

    def scheduled(self, pod: PodInfo, node: str) -> None:
        """The pod is bound."""

        def note() -> str:
            return f"Successfully assigned {pod.namespace}/{pod.name} to {node}"

        self._about(pod, "Scheduled", note, "Binding", self.clock())

    def failed(self, pod: PodInfo, message: str) -> None:
        """An attempt failed. The same message is posted again after five minutes."""
        now = self.clock()
        with self._last_lock:
            if self._last.is_news(pod.uid, message, now) and self._about(
                pod, "FailedScheduling", lambda: message, "Scheduling", now
            ):
                self._last.note(pod.uid, message, now)

    def preempted(self, pod: PodInfo, note: str) -> None:
        """The pod was evicted for another; note: which, and where."""
        self._about(pod, "Preempted", lambda: note, "Preempting", self.clock())

    def forget(self, uid: str) -> None:
        """The pod waits no more."""
        with self._last_lock:
            self._last.forget(uid)

    def _about(self, pod: PodInfo, reason: str, note: Callable[[], str], action: str, at: float) -> bool:
        """note: asked for events that are posted; in a burst of pods nearly all exceed the rate."""

        def event() -> dict[str, Any]:
            source = EventSource(pod.scheduler_name, self.instance, action)
            is_warning = reason == "FailedScheduling"
            return api_event(
                pod_reference(pod), reason=reason, note=note(), at=at, source=source, is_warning=is_warning
            )

        return self.record(event, bucket=reason, at=at)


class Reports:
    """For any thread; nothing here waits. To be started after the session, and stopped before it."""

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
        """An attempt failed: no node (Unschedulable), or an error (SchedulerError)."""
        self.conditions.put(WaitingCondition.of(pod, reason, message))
        self.events.failed(pod, message)

    def paused(self, pod: PodInfo, message: str, *, by: str) -> None:
        """A gate has it wait by choice: WaitingForValley. No event: nothing went wrong.

        Not Unschedulable, by which autoscalers know pods that want more nodes.
        """
        self.conditions.put(WaitingCondition.of(pod, f"WaitingFor{by}", message))

    def scheduled(self, pod: PodInfo, node: str) -> None:
        """It is bound. The API server itself sets the condition PodScheduled=True then."""
        self.forget(pod.uid)
        self.events.scheduled(pod, node)
        if self._decisions is not None:
            self._decisions.bound(on_node(pod, node))

    def preempted(self, pod: PodInfo, note: str) -> None:
        """It was evicted for another pod."""
        self.events.preempted(pod, note)

    def forget(self, uid: str) -> None:
        """It is gone, or about to be bound."""
        self.conditions.forget(uid)
        self.events.forget(uid)


logger = logging.getLogger(__name__)

_LOGGED_REPORTS_AGAIN_AFTER_SECONDS: Final = 300.0


class LoggedReports:
    """In place of Reports; for any thread. clock: unix seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._told = LastReported(_MOST_PODS, again_after=_LOGGED_REPORTS_AGAIN_AFTER_SECONDS)

    def start(self) -> None:
        """Nothing has to begin."""

    def stop(self) -> None:
        """Nor to end."""

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


_CONTROLLER: Final = "forecast-scheduler.io/scheduler"
_ACTION: Final = "Scheduling"


class PodEvents(EventRecorder):
    """For any thread; posts in its own, and drops what is too much: events are no record."""

    def __init__(
        self, post: Post | None, *, instance: str, what: str = "jobs", clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(post, what=what, instance=instance, clock=clock)

    def tell(self, pod: PodInfo, reason: str, note: str) -> None:
        """Warn about a pod. reason: one word, as events have it; note: for people."""
        if not pod.stands_in:
            self.tell_about(pod_reference(pod), reason, note, is_warning=True)

    def tell_about(self, regarding: Mapping[str, str], reason: str, note: str, *, is_warning: bool) -> None:
        """The same of another object. regarding: its apiVersion, kind, namespace, name and uid."""
        now, source = self.clock(), EventSource(_CONTROLLER, self.instance, _ACTION)
        self.record(
            lambda: api_event(regarding, reason=reason, note=note, at=now, source=source, is_warning=is_warning), at=now
        )
