"""How the policies are doing, for /metrics. Register the collector with the registry of the service."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from placement.policies.events import PolicyEvents
from placement.policies.provider import PolicyProvider


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
            figures = self._events.figures
            events = CounterMetricFamily(
                "forecast_policy_events",
                "Events about policies: posted, limited by the rate, dropped because the API server was too slow, "
                "failed.",
                labels=["outcome"],
            )
            for outcome in ("posted", "limited", "dropped", "failed"):
                events.add_metric([outcome], getattr(figures, outcome))
            yield events
