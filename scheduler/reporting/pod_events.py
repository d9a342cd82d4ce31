"""Warnings about pods, as Kubernetes events of these: of jobs, of what is evicted from GPU nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from kube.events.api_event import EventSource, api_event
from kube.events.event_recorder import EventPosting, Post
from kube.objects.objects import PodInfo

_MOST_WAITING: Final = 500
_CONTROLLER: Final = "forecast-scheduler.io/scheduler"
_ACTION: Final = "Scheduling"


class PodEvents:
    """For any thread; posts in its own, and drops what is too much: events are no record."""

    def __init__(
        self, post: Post | None, *, instance: str, what: str = "jobs", clock: Callable[[], float] = time.time
    ) -> None:
        """
        post     : session_post(session); None = nothing is told
        instance : name of this replica, as events show it
        what     : the events are about, for the log and the name of the thread
        clock    : unix seconds
        """
        self._instance, self._clock = instance, clock
        self._posting: EventPosting[dict[str, Any]] | None = None
        if post is not None:
            self._posting = EventPosting(post, lambda event: event, what=what, max_waiting=_MOST_WAITING)

    def start(self) -> None:
        """Begin to post. Once only."""
        if self._posting is not None:
            self._posting.start()

    def stop(self) -> None:
        """Post what waits, if that takes no longer than two seconds."""
        if self._posting is not None:
            self._posting.stop()

    def tell(self, pod: PodInfo, reason: str, note: str) -> None:
        """reason: one word, as events have it; note: for people."""
        regarding = {"apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
        self.tell_about(regarding, reason, note, is_warning=True)

    def tell_about(self, regarding: Mapping[str, str], reason: str, note: str, *, is_warning: bool) -> None:
        """The same of another object. regarding: its apiVersion, kind, namespace, name and uid."""
        if self._posting is None:
            return
        source = EventSource(_CONTROLLER, self._instance, _ACTION)
        self._posting.put(
            api_event(dict(regarding), reason=reason, note=note, at=self._clock(), source=source, is_warning=is_warning)
        )
