"""Posts Events in a thread of its own, behind an outbox: an API server that is down costs events only.

Needs `create` on events.events.k8s.io in the namespaces of the objects they are about.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import orjson
from kubernetes import client

from kube.client.kubernetes_client import send
from kube.outbox import Outbox

logger = logging.getLogger(__name__)

T = TypeVar("T")

Post = Callable[[str, bytes], int]
"""Sends a JSON body to a path of the API server and returns the status; raises urllib3's HTTPError and OSError."""


@dataclass(frozen=True, slots=True)
class EventFigures:
    """Events since the start. limited: more than the rate; dropped: the queue was full; failed: refused or lost."""

    posted: int
    limited: int
    dropped: int
    failed: int


class EventPosting(Generic[T]):
    """Takes items from any thread, and makes and posts their events in its own."""

    def __init__(self, post: Post, describe: Callable[[T], Mapping[str, Any]], *, what: str, max_waiting: int) -> None:
        """
        describe : the event of an item, see api_event
        what     : the events are of, for the log and the name of the thread
        """
        self._post, self._describe, self._what = post, describe, what
        self._posted = self._failed = 0
        self._failing = False
        self._outbox: Outbox[T] = Outbox(f"events-of-{what}", self._send, max_items=max_waiting, batch=1)

    def start(self) -> None:
        """Begin to post."""
        self._outbox.start()

    def stop(self, timeout: float = 2.0) -> None:
        """Post what waits, if that takes no longer than `timeout` seconds."""
        self._outbox.stop(timeout)

    def put(self, item: T) -> None:
        """Post its event soon, if there is room. Never waits."""
        self._outbox.put(item)

    @property
    def posted(self) -> int:
        """Events so far."""
        return self._posted

    @property
    def failed(self) -> int:
        """Events that were refused or lost."""
        return self._failed

    @property
    def dropped(self) -> int:
        """Events for which there was no room."""
        return self._outbox.refused

    def _send(self, items: Sequence[T]) -> None:
        for item in items:
            try:
                event = self._describe(item)
                namespace = quote(event["metadata"]["namespace"], safe="")
                status = self._post(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", orjson.dumps(event))
            except Exception as error:
                self._fail(f"{type(error).__name__}: {error}"[:300])
                continue
            if status < 300:
                self._posted += 1
                if self._failing:
                    self._failing = False
                    logger.info("events are posted again", extra={"lost": self._failed})
            elif status == 403:
                # It also answers so where the namespace is being deleted; its own words tell the two apart no better.
                self._fail("the API server forbids it (403): grant create on events.events.k8s.io")
            else:
                self._fail(f"the API server answered {status}")

    def _fail(self, why: str) -> None:
        self._failed += 1
        if not self._failing:  # once, until it works again
            self._failing = True
            logger.warning("events of %s are not posted", self._what, extra={"why": why})


def api_server_post(api: client.ApiClient, *, seconds: float = 2.0) -> Post:
    """Posts through the official client's connections. No retries: an event sent twice is told twice."""

    def post(path: str, body: bytes) -> int:
        return send(api, "POST", path, body, seconds=seconds).status

    return post
