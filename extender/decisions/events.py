"""Posts decisions as Events, a few a second at most, behind an outbox: an API server that is down costs events only.

Needs `create` on events.events.k8s.io in every namespace that has pods (docs/shadow.md).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import orjson
import urllib3
from kubernetes import client

from extender.decisions.decision import Binding, decision_of, slimmed
from extender.decisions.event import event_of
from extender.decisions.outbox import Outbox
from extender.decisions.token_bucket import TokenBucket

__all__ = ["EventFigures", "EventSink", "Post", "api_server_post"]

logger = logging.getLogger(__name__)

Post = Callable[[str, bytes], int]
"""Sends a JSON body to a path of the API server and returns the status; raises urllib3's HTTPError and OSError."""

_MAX_WAITING = 200


@dataclass(frozen=True, slots=True)
class EventFigures:
    """Decisions since the start. limited: more than the rate; dropped: the queue was full; failed: refused or lost."""

    posted: int
    limited: int
    dropped: int
    failed: int


class EventSink:
    """Takes bindings from any thread, posts them in its own."""

    def __init__(
        self,
        post: Post,
        *,
        instance: str,
        rate: float = 5.0,
        burst: float = 50.0,
        in_shadow: bool = False,
        max_waiting: int = _MAX_WAITING,
    ) -> None:
        """
        instance    : name of this replica, as events show it
        rate, burst : events a second, and at once
        in_shadow   : whether advice that nobody was given is told, too
        """
        self._post, self._instance, self._in_shadow = post, instance, in_shadow
        self._bucket, self._lock = TokenBucket(rate, burst), threading.Lock()
        self._posted = self._limited = self._failed = 0
        self._failing = False
        self._outbox: Outbox[Binding] = Outbox("decision-events", self._send, max_items=max_waiting, batch=1)

    def start(self) -> None:
        """Begin to post."""
        self._outbox.start()

    def stop(self, timeout: float = 2.0) -> None:
        """Post what waits, if that takes no longer than `timeout` seconds."""
        self._outbox.stop(timeout)

    def take(self, binding: Binding) -> None:
        """Post it soon, if events are not too many already. Never waits."""
        if binding.advice.is_shadow and not self._in_shadow:
            return
        with self._lock:
            if not self._bucket.take(binding.at):
                self._limited += 1
                return
        if len(binding.advice.nodes) > 1_000:  # 200 of them would hold tens of megabytes
            binding = Binding(slimmed(binding.advice), binding.node, binding.at, binding.n_nodes, binding.version)
        self._outbox.put(binding)

    @property
    def figures(self) -> EventFigures:
        """So far."""
        return EventFigures(self._posted, self._limited, self._outbox.refused, self._failed)

    def _send(self, bindings: Sequence[Binding]) -> None:
        for binding in bindings:
            namespace = quote(binding.advice.pod.partition("/")[0], safe="")
            try:
                body = orjson.dumps(event_of(decision_of(binding), instance=self._instance))
                status = self._post(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", body)
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
            logger.warning("events of decisions are not posted", extra={"why": why})


def api_server_post(api: client.ApiClient, *, seconds: float = 2.0) -> Post:
    """Posts through the official client's connections. No retries: an event sent twice is told twice."""

    def post(path: str, body: bytes) -> int:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "forecast-scheduler"}
        # Asking for the settings runs the client's refresh hook: rotated tokens are picked up here.
        if (bearer := api.configuration.auth_settings().get("BearerToken")) and bearer["value"]:
            headers["Authorization"] = bearer["value"]
        pool: urllib3.PoolManager = api.rest_client.pool_manager
        answer = pool.request(
            "POST",
            api.configuration.host + path,
            body=body,
            headers=headers,
            retries=False,
            redirect=False,
            timeout=urllib3.Timeout(total=seconds),
        )
        return int(answer.status)

    return post
