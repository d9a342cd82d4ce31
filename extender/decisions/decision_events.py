"""Posts decisions as Events, a few a second at most, behind an outbox: an API server that is down costs events only.

Needs `create` on events.events.k8s.io in every namespace that has pods (docs/start/shadow.md).
"""

from __future__ import annotations

import threading
from typing import Any

from extender.decisions.decision import Binding, decision_of, slimmed
from extender.decisions.event import event_of
from kube.events.event_recorder import EventFigures, EventPosting, Post
from kube.token_bucket import TokenBucket

_MAX_WAITING = 200


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
        self._instance, self._in_shadow = instance, in_shadow
        self._bucket, self._lock, self._limited = TokenBucket(rate, burst), threading.Lock(), 0
        self._posting = EventPosting(post, self._describe, what="decisions", max_waiting=max_waiting)

    def start(self) -> None:
        """Begin to post."""
        self._posting.start()

    def stop(self, timeout: float = 2.0) -> None:
        """Post what waits, if that takes no longer than `timeout` seconds."""
        self._posting.stop(timeout)

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
        self._posting.put(binding)

    @property
    def figures(self) -> EventFigures:
        """So far."""
        return EventFigures(self._posting.posted, self._limited, self._posting.dropped, self._posting.failed)

    def _describe(self, binding: Binding) -> dict[str, Any]:
        return event_of(decision_of(binding), instance=self._instance)
