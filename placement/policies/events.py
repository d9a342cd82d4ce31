"""Tells people of policies in Events: on the ConfigMap what became of it, on a pod that the policy it names is none.

Needs `create` on events.events.k8s.io (docs/use/policies.md).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kube.events.api_event import EventSource, api_event
from kube.events.event_recorder import EventFigures, EventPosting, Post
from kube.objects.objects import PodInfo
from kube.token_bucket import TokenBucket
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


@dataclass(frozen=True, slots=True)
class _Told:
    """note: made by whoever posts: to find out what may have been meant takes milliseconds."""

    regarding: Mapping[str, str]
    reason: str
    note: Callable[[], str]
    action: str
    at: float


class PolicyEvents:
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
        """
        instance    : name of this replica, as events show it
        rate, burst : events a second, and at once, of documents and of pods
        clock       : unix seconds
        """
        self._instance, self._clock = instance, clock
        self._documents, self._pods = TokenBucket(rate, burst), TokenBucket(rate, burst)
        self._lock, self._limited = threading.Lock(), 0
        self._posting = EventPosting(post, self._describe, what="policies", max_waiting=_MAX_WAITING)

    def start(self) -> None:
        """Begin to post."""
        self._posting.start()

    def stop(self, timeout: float = 2.0) -> None:
        """Post what waits, if that takes no longer than `timeout` seconds."""
        self._posting.stop(timeout)

    def document(self, regarding: Mapping[str, str], outcome: PolicyOutcome) -> None:
        """What became of a document. regarding: the ConfigMap, see api_event."""
        self._put(self._documents, regarding, _REASONS[outcome.kind], lambda: outcome.message, "LoadingPolicies")

    def unknown(self, pod: PodInfo, name: str, known: Collection[str]) -> None:
        """A pod's annotation names no policy. Never waits."""
        regarding = {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
        }
        shown = shortened_name(name)

        def note() -> str:
            hint = way_out(shown, sorted(known))
            return f"{POLICY_ANNOTATION} names no policy, it is passed over: {shown!r}; {hint}"

        self._put(self._pods, regarding, _UNKNOWN, note, "ChoosingPolicy")

    @property
    def figures(self) -> EventFigures:
        """So far."""
        return EventFigures(self._posting.posted, self._limited, self._posting.dropped, self._posting.failed)

    def _put(
        self, bucket: TokenBucket, regarding: Mapping[str, str], reason: str, note: Callable[[], str], action: str
    ) -> None:
        now = self._clock()
        with self._lock:
            if not bucket.take(now):
                self._limited += 1
                return
        self._posting.put(_Told(regarding, reason, note, action, now))

    def _describe(self, told: _Told) -> dict[str, Any]:
        source = EventSource(_CONTROLLER, self._instance, told.action)
        is_warning = told.reason != _REASONS[OutcomeKind.ACCEPTED]
        return api_event(
            told.regarding, reason=told.reason, note=told.note(), at=told.at, source=source, is_warning=is_warning
        )
