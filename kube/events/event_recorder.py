"""Posts Events in a thread of its own, behind an outbox: an API server that is down costs events only.

Needs `create` on events.events.k8s.io in the namespaces of the objects they are about.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec
from kubernetes import client

from kube.client.api_answer import ApiAnswer
from kube.client.kubernetes_client import send
from kube.events.api_event import api_event, pod_reference
from kube.failure_notice import FailureNotice
from kube.objects.objects import PodInfo
from kube.outbox import Outbox
from kube.session.api_session import ApiSession
from kube.session.session_calls import call
from kube.write_pacing import TokenBucket

logger = logging.getLogger(__name__)

Post = Callable[[str, bytes], int]
"""Sends a JSON body to a path of the API server and returns the status; raises OSError."""

_Make = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class EventFigures:
    """Events since the start. limited: more than the rate; dropped: the queue was full; failed: refused or lost."""

    posted: int
    limited: int
    dropped: int
    failed: int


class EventRecorder:
    """Takes events from any thread, and makes and posts them in its own. Named after the EventRecorder of client-go.

    post        : None = none is posted
    what        : the events are of, for the log and the name of the thread
    instance    : name of this replica, as events show it; controller: the component; action: what it is doing
    rate, burst : events a second, and at once, in each bucket
    clock       : unix seconds
    """

    def __init__(
        self,
        post: Post | None,
        *,
        what: str,
        instance: str,
        controller: str = "forecast-scheduler.io/scheduler",
        action: str = "Scheduling",
        rate: float = math.inf,
        burst: float = math.inf,
        max_waiting: int = 500,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.clock = clock
        self._instance, self._controller, self._action = instance, controller, action
        self._post, self._rate, self._burst = post, rate, burst
        self._buckets: dict[str, TokenBucket] = {}
        self._lock = threading.Lock()
        self._limited = self._posted = self._failed = 0
        self._notice = FailureNotice(logger, f"events of {what} are not posted", "events are posted again")
        self._outbox: Outbox[_Make] = Outbox(f"events-of-{what}", self._send, max_items=max_waiting, batch=1)

    def start(self) -> None:
        """Begin to post. Once only."""
        if self._post is not None:
            self._outbox.start()

    def stop(self, timeout: float = 2.0) -> None:
        """Post what waits, if that takes no longer than `timeout` seconds."""
        if self._post is not None:
            self._outbox.stop(timeout)

    def record(
        self,
        regarding: PodInfo | Mapping[str, str],
        reason: str,
        note: str | Callable[[], str],
        *,
        is_warning: bool = True,
        at: float | None = None,
        bucket: str = "",
        controller: str = "",
        action: str = "",
    ) -> bool:
        """Post an event soon. Never waits. Returns False if it is dropped: the rate is exceeded, or too many wait.

        regarding : a pod, or as api_event takes it; see there also for the reason
        note      : for people; a function is called in the thread that posts
        at        : unix seconds; None = now
        bucket    : events of one bucket cannot use up the rate of another
        controller, action : '' = those of the recorder
        """
        if self._post is None:
            return True
        moment = self.clock() if at is None else at
        with self._lock:
            if bucket not in self._buckets:
                self._buckets[bucket] = TokenBucket(self._rate, self._burst)
            if not self._buckets[bucket].take(moment):
                self._limited += 1
                return False
        # No closure over the arguments: in a burst of pods nearly all calls end above.
        said = {"reason": reason, "at": moment, "is_warning": is_warning, "instance": self._instance}
        said |= {"controller": controller or self._controller, "action": action or self._action}
        return self._outbox.put(partial(_event, regarding, note, said))

    def warn(self, pod: PodInfo, reason: str, note: str) -> None:
        """Post a warning about a pod, unless it only stands in for one."""
        if not pod.stands_in:
            self.record(pod, reason, note)

    @property
    def figures(self) -> EventFigures:
        """Counts of events since the start."""
        return EventFigures(self._posted, self._limited, self._outbox.refused, self._failed)

    def _send(self, items: Sequence[_Make]) -> None:
        assert self._post is not None
        for make in items:
            try:
                event = make()
                namespace = quote(event["metadata"]["namespace"], safe="")
                status = self._post(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", msgspec.json.encode(event))
            except Exception as error:
                self._fail(f"{type(error).__name__}: {error}"[:300])
                continue
            if status < 300:
                self._posted += 1
                self._notice.succeeded(lost=self._failed)
            elif status == 403:
                # A namespace that is being deleted gets the same answer, and its text does not distinguish the two.
                self._fail("the API server forbids it (403): grant create on events.events.k8s.io")
            else:
                self._fail(f"the API server answered {status}")

    def _fail(self, why: str) -> None:
        self._failed += 1
        self._notice.failed(why)


def _event(
    regarding: PodInfo | Mapping[str, str], note: str | Callable[[], str], said: Mapping[str, Any]
) -> dict[str, Any]:
    about = pod_reference(regarding) if isinstance(regarding, PodInfo) else regarding
    return api_event(about, note=note if isinstance(note, str) else note(), **said)


def api_server_post(api: client.ApiClient, *, seconds: float = 2.0) -> Post:
    """Posts through the official client's connections. No retries: an event that is sent twice is shown twice."""

    def post(path: str, body: bytes) -> int:
        return _status(send(api, "POST", path, body, seconds=seconds))

    return post


def session_post(session: ApiSession, *, seconds: float = 5.0) -> Post:
    """Posts through a session, so that a replica that does not lead posts nothing."""

    def post(path: str, body: bytes) -> int:
        request = session.request("POST", path, body, seconds=seconds)
        return _status(call(session, request, seconds + 5.0, "posting an event"))

    return post


def _status(answer: ApiAnswer) -> int:
    if answer.status <= 0:
        raise OSError(answer.text)
    return answer.status
