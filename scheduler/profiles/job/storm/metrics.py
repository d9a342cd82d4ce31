"""Metrics of storms that are foreseen and of the room kept for them."""

from __future__ import annotations

from prometheus_client import Counter, Gauge
from prometheus_client.registry import Collector


class StormMetrics:
    """For any thread. The exporter registers `collectors`."""

    def __init__(self) -> None:
        self.expected_arrivals = Gauge(
            "forecast_job_expected_arrivals",
            "Job pods that are expected to be created within the time ahead (1m, 1h).",
            ["ahead"],
            registry=None,
        )
        self.reserved = Gauge(
            "forecast_job_headroom_reserved",
            "What is kept free of other jobs for storms, in cores, bytes and pods.",
            ["resource"],
            registry=None,
        )
        self.storms = Counter("forecast_job_storms", "Storms that were foreseen and whose time is over.", registry=None)
        self.expected_pods = Counter(
            "forecast_job_storm_expected_pods", "Pods that were foreseen in storms whose time is over.", registry=None
        )
        self.arrived_pods = Counter(
            "forecast_job_storm_arrived_pods",
            "Pods of these storms that had been given a node by the end of their time.",
            registry=None,
        )

    @property
    def collectors(self) -> tuple[Collector, ...]:
        return (self.expected_arrivals, self.reserved, self.storms, self.expected_pods, self.arrived_pods)
