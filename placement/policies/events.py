"""Reports policies in Events: on the ConfigMap what became of it, on a pod that it names an unknown policy.

Needs `create` on events.events.k8s.io (docs/use/policies.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from kube.events.api_event import EventSource, api_event, pod_reference
from kube.events.event_recorder import EventRecorder, Post
from kube.objects.objects import PodInfo
from placement.policies.mistakes import way_out
from placement.policies.policy import POLICY_ANNOTATION, shortened_name
from placement.policies.status import OutcomeKind, PolicyOutcome

_CONTROLLER: Final = "forecast-scheduler.io/policies"
_REASONS: Final = {
    OutcomeKind.ACCEPTED: "PolicyAccepted",
    OutcomeKind.REFUSED: "PolicyRefused",
    OutcomeKind.GONE: "PolicyGone",
}
_UNKNOWN: Final = "UnknownPolicy"
_MAX_WAITING: Final = 200


class PolicyEvents(EventRecorder):
    """For any thread; posts in its own. Documents and pods have a rate each: a storm of pods hides no refusal."""

    def __init__(
        self,
        post: Post,
        *,
        instance: str,
        rate: float = 1.0,
        burst: float = 20.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(
            post, what="policies", instance=instance, rate=rate, burst=burst, max_waiting=_MAX_WAITING, clock=clock
        )

    def document(self, regarding: Mapping[str, str], outcome: PolicyOutcome) -> None:
        """What became of a document. regarding: the ConfigMap, see api_event."""
        self._about("documents", regarding, _REASONS[outcome.kind], lambda: outcome.message, "LoadingPolicies")

    def unknown(self, pod: PodInfo, name: str, known: Collection[str]) -> None:
        """A pod's annotation names no policy. Never waits."""
        shown = shortened_name(name)

        def note() -> str:  # made in the thread that posts: to find out what may have been meant takes milliseconds
            hint = way_out(shown, sorted(known))
            return f"{POLICY_ANNOTATION} names no policy, it is passed over: {shown!r}; {hint}"

        self._about("pods", pod_reference(pod), _UNKNOWN, note, "ChoosingPolicy")

    def _about(
        self, bucket: str, regarding: Mapping[str, str], reason: str, note: Callable[[], str], action: str
    ) -> None:
        now, source = self.clock(), EventSource(_CONTROLLER, self.instance, action)
        is_warning = reason != _REASONS[OutcomeKind.ACCEPTED]

        def event() -> dict[str, Any]:
            return api_event(regarding, reason=reason, note=note(), at=now, source=source, is_warning=is_warning)

        self.record(event, bucket=bucket, at=now)
