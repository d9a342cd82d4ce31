"""Metrics of the scheduling loops; docs/use/scheduling.md lists them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from enum import Enum
from typing import Final

from prometheus_client import Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kube.events.event_recorder import EventFigures
from kube.status.pod_condition_writer import ConditionFigures
from scheduler.cycle.cycle_times import CycleTimes, Point
from scheduler.scheduling_answers import SchedulingState
from scorer.service.scorer_service_metrics import stage_histogram

STAGES: Final = (
    "pop",
    "post_filter",
    "cycle",
    "binding_queue",
    "pre_bind",
    "bind",
    "post_bind",
)
"""As kube-scheduler names its extension points. pop: without the wait for a unit; cycle: all that is in memory,
filters, scores and Reserve of a batch at once; post_filter: of that, looking for victims."""

_STAGES: Final = (
    0.00001,
    0.00005,
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    1.0,
    5.0,
)

_POD_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
_PLUGINS: Final = (0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1.0)

_SAMPLED_SHARE: Final = 0.1
"""Of cycles, in which plugins are timed, as in kube-scheduler."""


class AttemptResult(Enum):
    """What became of an attempt to schedule a pod, as in kube-scheduler's scheduler_schedule_attempts_total."""

    SCHEDULED = "scheduled"  # bound
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


class SchedulingMetrics:
    """Counters and histograms; for any thread. The exporter registers `collectors`."""

    def __init__(self, *, rng: random.Random | None = None) -> None:
        """rng: chooses the cycles in which plugins are timed."""
        self._rng = rng or random.Random()
        self.stages = stage_histogram(_STAGES)
        self._stages = {stage: self.stages.labels(stage) for stage in STAGES}
        self._points = Histogram(
            "forecast_extension_point_duration_seconds",
            "Time that one cycle, of a unit or a batch, took at an extension point; part of the stage cycle.",
            ["extension_point"],
            buckets=_STAGES,
            registry=None,
        )
        self._of_point = {point: self._points.labels(point.value) for point in Point}
        self._plugins = Histogram(
            "forecast_plugin_execution_duration_seconds",
            "Time that a plugin took in one cycle, for all nodes and like pods at once. One cycle in ten is sampled.",
            ["extension_point", "plugin"],
            buckets=_PLUGINS,
            registry=None,
        )
        self._attempts = Counter(
            "forecast_schedule_attempts",
            "Attempts to schedule a pod by result and profile; scheduled = bound.",
            ["result", "profile"],
            registry=None,
        )
        self._pod_seconds = Histogram(
            "forecast_pod_scheduling_seconds",
            "Time from when a pod was first seen until it was bound, attempts and waiting included, by profile.",
            ["profile"],
            buckets=_POD_SECONDS,
            registry=None,
        )
        self._victims = Counter(
            "forecast_preemption_victims",
            "Pods whose eviction for one of higher priority the API server took.",
            registry=None,
        )
        self._preemptions = Counter(
            "forecast_preemption_attempts",
            "Times that it was looked for victims for a pod, found or not.",
            registry=None,
        )

    @property
    def collectors(self) -> tuple[Collector, ...]:
        """All but `stages`, which the metrics of the service share."""
        return (self._points, self._plugins, self._attempts, self._pod_seconds, self._victims, self._preemptions)

    def observe_stage(self, stage: str, seconds: float) -> None:
        """Record the seconds of one stage, of a unit, a batch or a pod. stage: one of STAGES, or another of ours."""
        found = self._stages.get(stage)
        if found is None:
            found = self._stages.setdefault(stage, self.stages.labels(stage))
        found.observe(max(seconds, 0.0))

    def cycle_times(self) -> CycleTimes:
        """What the next cycle notes its times in; one in ten times plugins, too."""
        return CycleTimes(is_sampled=self._rng.random() < _SAMPLED_SHARE)

    def observe_cycle(self, times: CycleTimes) -> None:
        """Record the times of a cycle."""
        for point, seconds in times.points.items():
            self._of_point[point].observe(max(seconds, 0.0))
        for (point, plugin), seconds in times.plugins.items():
            self._plugins.labels(point.value, plugin).observe(max(seconds, 0.0))

    def attempt(self, result: AttemptResult, profile: str, n: int = 1) -> None:
        """Count pods that were tried, with this result. profile: its scheduler name."""
        self._attempts.labels(result.value, profile).inc(n)

    def bound(self, seconds_since_seen: float, profile: str) -> None:
        """A pod was bound. A clock that was set back makes no negative times. profile: its scheduler name."""
        self._pod_seconds.labels(profile).observe(max(seconds_since_seen, 0.0))

    def looked_for_victims(self, n: int = 1) -> None:
        """Record the number of victims, also none."""
        self._preemptions.inc(n)

    def evicted(self) -> None:
        """The API server took the eviction of a victim."""
        self._victims.inc()


class SchedulingGauges(Collector):
    """The state of the loops as metrics."""

    def __init__(self, state: Callable[[], SchedulingState]) -> None:
        """state: read at each scrape."""
        self._state = state

    def collect(self) -> Iterator[Metric]:
        state = self._state()
        yield _by("queue", "forecast_pending_pods", "Pods of ours that wait, by part of the queue.", state.pending)
        yield _by("phase", "forecast_gangs", "PodGroups by phase.", state.gangs)
        yield GaugeMetricFamily(
            "forecast_gang_longest_wait_seconds",
            "Time since the first vain attempt at the complete gang that has waited longest; 0 = none waits so.",
            value=state.gang_wait,
        )
        yield GaugeMetricFamily("forecast_bindings_in_flight", "Bindings under way.", value=state.in_flight)
        yield GaugeMetricFamily(
            "forecast_assumed_pods", "Pods assumed to be bound that the watch does not show so yet.", state.assumed
        )
        yield GaugeMetricFamily("forecast_leader", "1 = this replica schedules.", value=float(state.is_leader))
        if state.since_cycle is not None:
            yield GaugeMetricFamily(
                "forecast_scheduling_loop_age_seconds",
                "Time since the loop last went round, idle or not.",
                value=state.since_cycle,
            )


def _by(label: str, name: str, text: str, values: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], float(value))
    return family


class SchedulingFigures(Collector):
    """
    incoming  : pods that came into a part of the queue, by (event, part)
    throttled : answers 429 to bindings
    """

    def __init__(self, *, incoming: Callable[[], Mapping[tuple[str, str], int]], throttled: Callable[[], int]) -> None:
        self._incoming, self._throttled = incoming, throttled

    def collect(self) -> Iterator[Metric]:
        incoming = CounterMetricFamily(
            "forecast_queue_incoming_pods", "Pods that came into a part of the queue.", labels=["event", "queue"]
        )
        for (event, part), n in sorted(self._incoming().items()):
            incoming.add_metric([event, part], n)
        yield incoming
        yield CounterMetricFamily(
            "forecast_bindings_throttled", "Bindings that the API server answered with 429.", value=self._throttled()
        )


class ReportFigures(Collector):
    """What became of conditions and events."""

    def __init__(self, conditions: Callable[[], ConditionFigures], events: Callable[[], EventFigures]) -> None:
        self._conditions, self._events = conditions, events

    def collect(self) -> Iterator[Metric]:
        yield _by_result(
            "forecast_conditions", "Conditions PodScheduled by what became of them.", asdict(self._conditions())
        )
        yield _by_result("forecast_scheduling_events", "Events of pods by what became of them.", asdict(self._events()))


def _by_result(name: str, text: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=["result"])
    for result, value in values.items():
        family.add_metric([result], value)
    return family
