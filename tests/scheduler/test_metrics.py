from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from kube.events.event_recorder import EventFigures
from kube.status.pod_condition_writer import ConditionFigures
from placement.pod_groups.pod_group import PodGroupInfo, PodGroupStatus
from scheduler.gangs.group_watch import GroupPhases
from scheduler.scheduling_answers import SchedulingState
from scheduler.scheduling_metrics import (
    STAGES,
    AttemptResult,
    ReportFigures,
    SchedulingFigures,
    SchedulingGauges,
    SchedulingMetrics,
)
from tests.scheduler.service.simple_scheduling import SimpleScheduling


def _text(metrics: SchedulingMetrics, *gauges: SchedulingGauges) -> list[str]:
    registry = CollectorRegistry()
    for collector in (metrics.stages, *metrics.collectors, *gauges):
        registry.register(collector)
    return generate_latest(registry).decode().splitlines()


def test_stages_are_there_before_anything_happened_and_others_come_when_named() -> None:
    metrics = SchedulingMetrics()
    for stage in STAGES:
        assert f'forecast_scheduling_duration_seconds_count{{stage="{stage}"}} 0.0' in _text(metrics)
    metrics.observe_stage("cycle", 0.002)
    metrics.observe_stage("cycle", 0.002)
    metrics.observe_stage("preempt", 0.1)
    text = _text(metrics)
    assert 'forecast_scheduling_duration_seconds_count{stage="cycle"} 2.0' in text
    assert 'forecast_scheduling_duration_seconds_bucket{le="0.001",stage="cycle"} 0.0' in text
    assert 'forecast_scheduling_duration_seconds_bucket{le="0.0025",stage="cycle"} 2.0' in text
    assert 'forecast_scheduling_duration_seconds_count{stage="preempt"} 1.0' in text


def test_attempts_are_counted_by_result_and_profile() -> None:
    metrics = SchedulingMetrics()
    metrics.attempt(AttemptResult.SCHEDULED, "forecast-scheduler", 25)
    metrics.attempt(AttemptResult.UNSCHEDULABLE, "forecast-scheduler")
    metrics.attempt(AttemptResult.SCHEDULED, "forecast-scheduler-gpu")
    text = _text(metrics)
    assert 'forecast_schedule_attempts_total{profile="forecast-scheduler",result="scheduled"} 25.0' in text
    assert 'forecast_schedule_attempts_total{profile="forecast-scheduler",result="unschedulable"} 1.0' in text
    assert 'forecast_schedule_attempts_total{profile="forecast-scheduler-gpu",result="scheduled"} 1.0' in text


def test_states_are_asked_for_when_somebody_looks() -> None:
    scheduling, asked = SimpleScheduling(), 0

    def state() -> SchedulingState:
        nonlocal asked
        asked += 1
        return scheduling.state()

    metrics, gauges = SchedulingMetrics(), SchedulingGauges(state)
    CollectorRegistry().register(gauges)
    assert asked == 0
    text = _text(metrics, gauges)
    assert asked == 1
    assert {
        'forecast_pending_pods{queue="active"} 1.0',
        'forecast_pending_pods{queue="unschedulable"} 2.0',
        'forecast_gangs{phase="Pending"} 1.0',
        "forecast_gang_longest_wait_seconds 90.0",
        "forecast_bindings_in_flight 4.0",
        "forecast_assumed_pods 6.0",
        "forecast_leader 1.0",
        "forecast_scheduling_loop_age_seconds 0.25",
    } <= set(text)
    scheduling.change(since_cycle=None, is_leader=False)  # it has not begun
    text = _text(metrics, gauges)
    assert "forecast_leader 0.0" in text
    assert not [line for line in text if "loop_age" in line]


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


class _Sink:
    def __init__(self) -> None:
        self.told: list[Any] = []

    def replace(self, objects: Any) -> None:
        self.told.append([group.name for group in objects])

    def put(self, obj: PodGroupInfo) -> None:
        self.told.append(("put", obj.name))

    def delete(self, obj: PodGroupInfo) -> None:
        self.told.append(("delete", obj.name))

    def absent(self) -> None:
        self.told.append("absent")


def _group(name: str, phase: str = "") -> PodGroupInfo:
    return PodGroupInfo("jobs", name, f"uid-{name}", 1, 0.0, status=PodGroupStatus(phase=phase))


def test_groups_are_counted_by_phase_and_passed_on() -> None:
    sink = _Sink()
    phases = GroupPhases(sink)
    assert phases.counts() == {}
    phases.replace([_group("a"), _group("b", "Running")])
    assert phases.counts() == {"Pending": 1, "Running": 1}
    phases.put(_group("a", "Scheduled"))
    phases.put(_group("c", "Scheduled"))
    assert phases.counts() == {"Scheduled": 2, "Running": 1}
    phases.delete(_group("b"))
    phases.delete(_group("never-seen"))
    assert phases.counts() == {"Scheduled": 2}
    assert sink.told == [["a", "b"], ("put", "a"), ("put", "c"), ("delete", "b"), ("delete", "never-seen")]
    phases.replace([])
    assert phases.counts() == {}
    phases.absent()
    assert sink.told[-1] == "absent"
