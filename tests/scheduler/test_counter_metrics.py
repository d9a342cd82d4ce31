"""What parts of the loops count, as Prometheus reads it."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from kube.events.event_recorder import EventFigures
from kube.status.pod_condition_writer import ConditionFigures
from scheduler.counter_metrics import ReportFigures, SchedulingFigures


def _lines(*figures: Collector) -> set[str]:
    registry = CollectorRegistry()
    for one in figures:
        registry.register(one)
    return {line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")}


def test_everything_is_asked_for_when_somebody_looks() -> None:
    incoming = {("PodAdd", "active"): 4}
    figures = SchedulingFigures(
        incoming=lambda: incoming,
        throttled=lambda: 7,
    )
    reports = ReportFigures(
        conditions=lambda: ConditionFigures(written=1, dropped=2, gone=3, failed=4),
        events=lambda: EventFigures(posted=5, limited=6, dropped=7, failed=8),
    )
    incoming["BackoffComplete", "active"] = 9
    assert _lines(figures, reports) == {
        'forecast_queue_incoming_pods_total{event="PodAdd",queue="active"} 4.0',
        'forecast_queue_incoming_pods_total{event="BackoffComplete",queue="active"} 9.0',
        "forecast_bindings_throttled_total 7.0",
        'forecast_conditions_total{result="written"} 1.0',
        'forecast_conditions_total{result="dropped"} 2.0',
        'forecast_conditions_total{result="gone"} 3.0',
        'forecast_conditions_total{result="failed"} 4.0',
        'forecast_scheduling_events_total{result="posted"} 5.0',
        'forecast_scheduling_events_total{result="limited"} 6.0',
        'forecast_scheduling_events_total{result="dropped"} 7.0',
        'forecast_scheduling_events_total{result="failed"} 8.0',
    }
