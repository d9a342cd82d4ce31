"""What is expected and what the autoscaler does, as metrics. KEDA and dashboards read the loads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from autoscaling.autoscaler import AutoscalerState
from autoscaling.hand import Hand
from autoscaling.replicas.loads_ahead import METRIC, LoadsAhead


class AutoscalingCollector(Collector):
    """Implements prometheus_client's Collector. loads: those that may be said; hands: all that may act"""

    def __init__(
        self, state: Callable[[], AutoscalerState], loads: Callable[[], LoadsAhead], hands: Sequence[Hand]
    ) -> None:
        self._state, self._loads, self._hands = state, loads, tuple(hands)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; a service whose usage is not measured has no load."""
        state = self._state()
        loads = GaugeMetricFamily(
            METRIC,
            "Load to have replicas for: highest that all pods of the service together are expected to have within the "
            "lead, in base units.",
            labels=["namespace", "kind", "name", "resource"],
        )
        for one in self._loads():
            loads.add_metric([one.namespace, *one.labels.values()], one.value)
        yield loads
        yield _gauge("leading", "1 = this replica writes.", state.leads)
        yield _gauge("has_forecast", "1 = there is a forecast that may be acted on.", state.has_forecast)
        yield _gauge("held_up", "1 = something that was due could not be done.", bool(state.trouble))
        acting = GaugeMetricFamily(
            "forecast_autoscale_acting", "1 = acted when it was last asked, as the leader.", labels=["hand"]
        )
        for hand in self._hands:
            acting.add_metric([hand.name], float(hand.name in state.acting))
        yield acting
        for hand in self._hands:
            yield from hand.metrics()


def _gauge(name: str, help_text: str, value: bool) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"forecast_autoscale_{name}", help_text, value=float(value))
