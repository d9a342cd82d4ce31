from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from scheduler.metrics import STAGES, AttemptResult, SchedulingGauges, SchedulingMetrics
from scheduler.service.answers import SchedulingState
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


def test_pods_are_timed_from_when_they_were_seen_and_never_negatively() -> None:
    metrics = SchedulingMetrics()
    metrics.bound(0.02, "ours")
    metrics.bound(-5.0, "ours")  # a clock that was set back
    text = _text(metrics)
    assert 'forecast_pod_scheduling_seconds_bucket{le="0.005",profile="ours"} 1.0' in text
    assert 'forecast_pod_scheduling_seconds_sum{profile="ours"} 0.02' in text


def test_victims_and_searches_in_vain_are_told_apart() -> None:
    metrics = SchedulingMetrics()
    metrics.looked_for_victims()
    metrics.looked_for_victims()
    for _ in range(3):
        metrics.evicted()
    text = _text(metrics)
    assert "forecast_preemption_victims_total 3.0" in text
    assert "forecast_preemption_attempts_total 2.0" in text


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
