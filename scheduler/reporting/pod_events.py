"""Warnings about pods, as Kubernetes events of these: of jobs, of what is evicted from GPU nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from kube.events.api_event import EventSource, api_event, pod_reference
from kube.events.event_recorder import EventRecorder, Post
from kube.objects.objects import PodInfo

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
