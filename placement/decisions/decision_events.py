"""Posts decisions as Events, a few a second at most, behind an outbox: an API server that is down costs events only.

Needs `create` on events.events.k8s.io in every namespace that has pods (docs/start/shadow.md).
"""

from __future__ import annotations

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
        instance: str,
        rate: float = 5.0,
        burst: float = 50.0,
        in_shadow: bool = False,
        max_waiting: int = _MAX_WAITING,
    ) -> None:
        """
        in_shadow : whether to post advice that was not given, too

        See EventRecorder for the others.
        """
        super().__init__(post, what="decisions", instance=instance, rate=rate, burst=burst, max_waiting=max_waiting)
        self._in_shadow = in_shadow

    def take(self, binding: Binding) -> None:
        """Post it soon, if events are not too many already. Never waits."""
        if binding.advice.is_shadow and not self._in_shadow:
            return
        if len(binding.advice.nodes) > 1_000:  # 200 of them would hold tens of megabytes
            binding = Binding(slimmed(binding.advice), binding.node, binding.at, binding.n_nodes, binding.version)
        self.record(lambda: event_of(decision_of(binding), instance=self.instance), at=binding.at)
