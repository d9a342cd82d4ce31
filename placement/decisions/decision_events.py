"""Posts decisions as Events, a few a second at most, behind an outbox: an API server that is down costs events only.

Needs `create` on events.events.k8s.io in every namespace that has pods (docs/start/shadow.md).
"""

from __future__ import annotations

from dataclasses import replace

from kube.events.event_recorder import EventRecorder, Post
from placement.decisions.decision import Binding, decision_of, slimmed
from placement.decisions.event import event_of

_MAX_WAITING = 200


class EventSink(EventRecorder):
    """Takes bindings from any thread, posts them in its own."""

    def __init__(
        self,
        post: Post,
        *,
        controller: str,
        instance: str,
        rate: float = 5.0,
        burst: float = 50.0,
        max_waiting: int = _MAX_WAITING,
    ) -> None:
        """controller: the component that decides, as events name it; see EventRecorder for the others."""
        super().__init__(post, what="decisions", instance=instance, rate=rate, burst=burst, max_waiting=max_waiting)
        self._controller = controller

    def take(self, binding: Binding) -> None:
        """Post it soon, if events are not too many already. Never waits. A shadow leaves no traces on pods."""
        if binding.advice.is_shadow:
            return
        if len(binding.advice.nodes) > 1_000:  # 200 of them would hold tens of megabytes
            binding = replace(binding, advice=slimmed(binding.advice))
        self.record(
            lambda: event_of(decision_of(binding), controller=self._controller, instance=self.instance), at=binding.at
        )
