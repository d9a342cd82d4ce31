"""Reports policies: in Events on the ConfigMap and on a pod that names an unknown policy, and as figures for
/metrics. Needs `create` on events.events.k8s.io (docs/use/policies.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kube.events.event_recorder import EventRecorder, Post
from kube.objects.objects import PodInfo
from placement.policies.mistakes import way_out
from placement.policies.policy import POLICY_ANNOTATION, shortened_name
from placement.policies.provider import OutcomeKind, PolicyOutcome, PolicyProvider

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
            post,
            what="policies",
            instance=instance,
            controller=_CONTROLLER,
            rate=rate,
            burst=burst,
            max_waiting=_MAX_WAITING,
            clock=clock,
        )

    def document(self, regarding: Mapping[str, str], outcome: PolicyOutcome) -> None:
        """What became of a document. regarding: the ConfigMap, see api_event."""
        self.record(
            regarding,
            _REASONS[outcome.kind],
            outcome.message,
            is_warning=outcome.kind is not OutcomeKind.ACCEPTED,
            bucket="documents",
            action="LoadingPolicies",
        )

    def unknown(self, pod: PodInfo, name: str, known: Collection[str]) -> None:
        """A pod's annotation names no policy. Never waits."""
        shown = shortened_name(name)

        def note() -> str:  # made in the thread that posts: to find out what may have been meant takes milliseconds
            hint = way_out(shown, sorted(known))
            return f"{POLICY_ANNOTATION} names no policy, it is passed over: {shown!r}; {hint}"

        self.record(pod, _UNKNOWN, note, bucket="pods", action="ChoosingPolicy")


class PolicyCollector(Collector):
    """Reads the figures at each scrape."""

    def __init__(
        self,
        provider: PolicyProvider,
        events: PolicyEvents | None = None,
        *,
        last_contact: Callable[[], float | None] = lambda: None,
    ) -> None:
        """last_contact: unix seconds when the source was last heard of; None = never"""
        self._provider, self._events, self._last_contact = provider, events, last_contact

    def collect(self) -> Iterator[Metric]:
        """Of the document, its policies and the pods they were used for."""
        status = self._provider.status
        is_valid = status.version is not None and status.refusal is None
        yield GaugeMetricFamily(
            "forecast_policy_document_valid",
            "Whether the policy document that was seen last is in effect; 0 = an older one is, or the settings alone.",
            value=float(is_valid),
        )
        reloads = CounterMetricFamily(
            "forecast_policy_reloads",
            "Policy documents by what became of them: accepted, refused, gone.",
            labels=["outcome"],
        )
        for kind, count in status.outcomes.items():
            reloads.add_metric([kind.value], count)
        yield reloads
        yield GaugeMetricFamily(
            "forecast_policies", "Policies in effect, that of the settings included.", value=float(len(status.policies))
        )
        if status.since is not None:
            yield GaugeMetricFamily(
                "forecast_policy_loaded_timestamp_seconds",
                "When the policy document in effect took effect.",
                value=status.since,
            )
        if (contact := self._last_contact()) is not None:
            yield GaugeMetricFamily(
                "forecast_policy_source_last_contact_timestamp_seconds",
                "When the source of the policy document, file or API server, was last read.",
                value=contact,
            )
        yield CounterMetricFamily(
            "forecast_policy_unknown", "Pods whose annotation names a policy that there is not.", value=status.unknown
        )
        pods = CounterMetricFamily(
            "forecast_policy_pods", "Pods that were bound after an answer, by its policy.", labels=["policy"]
        )
        for policy, count in self._provider.pods.items():
            pods.add_metric([policy], count)
        yield pods
        if self._events is not None:
            events = CounterMetricFamily(
                "forecast_policy_events",
                "Events about policies: posted, limited by the rate, dropped because the API server was too slow, "
                "failed.",
                labels=["outcome"],
            )
            for outcome, count in asdict(self._events.figures).items():
                events.add_metric([outcome], count)
            yield events
