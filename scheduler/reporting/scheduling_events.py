"""Events that `kubectl describe pod` shows: Scheduled, FailedScheduling and Preempted, worded as kube-scheduler's.

Some a second at most: in a burst of thousands of pods each event would cost the API server as much as a binding.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from kube.events.api_event import EventSource, api_event
from kube.events.event_recorder import EventPosting, Post
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from kube.status.last_reported import LastReported
from kube.token_bucket import TokenBucket

_AGAIN_AFTER_SECONDS: Final = 300.0
_MOST_PODS: Final = 20_000


@dataclass(frozen=True, slots=True)
class SchedulingEventFigures:
    """Since the start. limited: more than the rate; dropped: the queue was full; failed: refused or lost."""

    posted: int
    limited: int
    dropped: int
    failed: int


class _Kind(Enum):
    """Its reason, and what was being done, as kube-scheduler calls it."""

    SCHEDULED = ("Scheduled", "Binding")
    FAILED = ("FailedScheduling", "Scheduling")
    PREEMPTED = ("Preempted", "Preempting")


@dataclass(frozen=True, slots=True)
class _News:
    """note: for people."""

    namespace: str
    name: str
    uid: str
    scheduler: str
    note: str
    at: float
    kind: _Kind


class SchedulingEvents:
    """For any thread; posts in its own.

    instance    : name of this replica, as events show it
    rate, burst : events a second, and at once; of each kind
    clock       : unix seconds
    """

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
        self._instance, self._clock = instance, clock
        self._lock = threading.Lock()
        self._buckets = {kind: TokenBucket(rate, burst) for kind in _Kind}
        self._told = LastReported(_MOST_PODS, again_after=_AGAIN_AFTER_SECONDS)
        self._limited = 0
        self._posting = EventPosting(post, self._describe, what="scheduling", max_waiting=max_waiting)

    def start(self) -> None:
        """Begin to post."""
        self._posting.start()

    def stop(self, timeout: float = 2.0) -> None:
        """Post what waits, if that takes no longer than `timeout` seconds."""
        self._posting.stop(timeout)

    def scheduled(self, pod: PodInfo, node: str) -> None:
        """The pod is bound."""
        self._tell(pod, f"Successfully assigned {pod.namespace}/{pod.name} to {node}", _Kind.SCHEDULED)

    def failed(self, pod: PodInfo, message: str) -> None:
        """An attempt failed. The same message is told again after five minutes."""
        self._tell(pod, message, _Kind.FAILED)

    def preempted(self, pod: PodInfo, note: str) -> None:
        """The pod was evicted for another; note: which, and where."""
        self._tell(pod, note, _Kind.PREEMPTED)

    def forget(self, uid: str) -> None:
        """The pod waits no more."""
        with self._lock:
            self._told.forget(uid)

    @property
    def figures(self) -> SchedulingEventFigures:
        """So far."""
        return SchedulingEventFigures(self._posting.posted, self._limited, self._posting.dropped, self._posting.failed)

    def _tell(self, pod: PodInfo, note: str, kind: _Kind) -> None:
        now, has_failed = self._clock(), kind is _Kind.FAILED
        with self._lock:
            if has_failed and not self._told.is_news(pod.uid, note, now):
                return
            if not self._buckets[kind].take(now):
                self._limited += 1
                return
            if has_failed:
                self._told.note(pod.uid, note, now)
        self._posting.put(_News(pod.namespace, pod.name, pod.uid, pod.scheduler_name, note, now, kind))

    def _describe(self, news: _News) -> dict[str, Any]:
        reason, action = news.kind.value
        return api_event(
            {"apiVersion": "v1", "kind": "Pod", "namespace": news.namespace, "name": news.name, "uid": news.uid},
            reason=reason,
            note=news.note,
            at=news.at,
            source=EventSource(news.scheduler, self._instance, action),
            is_warning=news.kind is _Kind.FAILED,
        )


def session_post(session: ApiSession, *, seconds: float = 5.0) -> Post:
    """Posts through a session, so that a replica that does not lead tells nothing."""

    def post(path: str, body: bytes) -> int:
        answer = session.submit(session.request("POST", path, body, seconds=seconds)).result(seconds + 5.0)
        if answer.status <= 0:
            raise OSError(answer.text)
        return answer.status

    return post
