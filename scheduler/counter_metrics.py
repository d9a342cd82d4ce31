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
    incoming   : pods that came into a part of the queue, by (event, part)
    throttled  : answers 429 to bindings
    conditions : None = none are written, as in a dry run
    events     : likewise
    """

    def __init__(
        self,
        *,
        incoming: Callable[[], Mapping[tuple[str, str], int]],
        throttled: Callable[[], int],
        conditions: Callable[[], ConditionFigures] | None = None,
        events: Callable[[], EventFigures] | None = None,
    ) -> None:
        self._incoming, self._throttled, self._conditions, self._events = incoming, throttled, conditions, events

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
        if self._conditions is not None:
            yield _by_result(
                "forecast_conditions",
                "Conditions PodScheduled by what became of them.",
                asdict(self._conditions()),
            )
        if self._events is not None:
            yield _by_result(
                "forecast_scheduling_events",
                "Events of pods by what became of them.",
                asdict(self._events()),
            )


def _by_result(name: str, text: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=["result"])
    for result, value in values.items():
        family.add_metric([result], value)
    return family
