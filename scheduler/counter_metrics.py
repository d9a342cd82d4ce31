"""Counts that parts of the loops keep for themselves, as metrics: read at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from kube.events.event_recorder import EventFigures
from kube.status.pod_condition_writer import ConditionFigures


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
