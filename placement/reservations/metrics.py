"""Reservations as Prometheus sees them; docs/use/reservations.md lists the metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from placement.reservations.reservations import Reservations


class ReservationCollector(Collector):
    """Every replica exports the same: what the API server says."""

    def __init__(self, reservations: Reservations) -> None:
        self._reservations = reservations

    def collect(self) -> Iterator[Metric]:
        phases = GaugeMetricFamily("forecast_reservations", "Reservations by phase.", labels=["phase"])
        for phase, n in self._reservations.by_phase().items():
            phases.add_metric([phase], n)
        yield phases
