"""Events that `kubectl describe pod` shows: Scheduled, FailedScheduling and Preempted, worded as kube-scheduler's.

Some a second at most: in a burst of thousands of pods each event would cost the API server as much as a binding.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from kube.events.api_event import EventSource, api_event, pod_reference
from kube.events.event_recorder import EventRecorder, Post
from kube.objects.objects import PodInfo
from kube.status.last_reported import LastReported

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
