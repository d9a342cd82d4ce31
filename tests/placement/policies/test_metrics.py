"""What /metrics says of policies."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from placement.policies.compiling import PolicyDefaults
from placement.policies.policy_reports import PolicyCollector, PolicyEvents
from placement.policies.provider import PolicyProvider
from tests.placement.policies.made_up import DOCUMENT, pod


def test_all_figures_are_exported() -> None:
    provider = PolicyProvider(PolicyDefaults(), clock=lambda: 1234.0)
    events = PolicyEvents(lambda path, body: 403, instance="one", rate=1, burst=1, clock=lambda: 1234.0)
    registry = CollectorRegistry()
    contact: list[float | None] = [None]
    registry.register(PolicyCollector(provider, events, last_contact=lambda: contact[0]))
    text = generate_latest(registry).decode()
    assert "forecast_policy_document_valid 0.0" in text and "forecast_policies 1.0" in text
    assert "loaded_timestamp" not in text and "last_contact" not in text
    contact[0] = 1230.0
    provider.tell_unknown(events.unknown)
    events.start()
    provider.offer(DOCUMENT)
    assert "forecast_policy_document_valid 1.0" in generate_latest(registry).decode()
    provider.offer("default: x")
    provider.gone()
    for uid in ("a", "b"):
        provider.choose(pod(policy="x", uid=uid))
    provider.count("batch")
    events.stop(timeout=30)
    text = generate_latest(registry).decode()
    for line in (
        "forecast_policy_document_valid 0.0",
        'forecast_policy_reloads_total{outcome="accepted"} 1.0',
        'forecast_policy_reloads_total{outcome="refused"} 1.0',
        'forecast_policy_reloads_total{outcome="gone"} 1.0',
        "forecast_policies 4.0",
        "forecast_policy_loaded_timestamp_seconds 1234.0",
        "forecast_policy_source_last_contact_timestamp_seconds 1230.0",
        "forecast_policy_unknown_total 2.0",
        'forecast_policy_pods_total{policy="batch"} 1.0',
        'forecast_policy_events_total{outcome="failed"} 1.0',
        'forecast_policy_events_total{outcome="limited"} 1.0',
    ):
        assert line in text
