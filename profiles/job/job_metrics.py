"""Metrics of the job profile: jobs that wait for the valley and were to be on time, storms that are foreseen and the
room kept for them.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.registry import Collector

_HELD_SECONDS = (1.0, 10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 28_800.0, 86_400.0)
_PLAN_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class ValleyMetrics:
    """For any thread. The exporter registers `collectors`."""

    def __init__(self) -> None:
        self.deadline_met = Counter(
            "forecast_job_deadline_met", "Job pods with a deadline that ended before it.", registry=None
        )
        self.deadline_missed = Counter(
            "forecast_job_deadline_missed",
            "Job pods with a deadline that came before they had ended; each is counted once.",
            registry=None,
        )
        self.latest_start_met = Counter(
            "forecast_job_latest_start_met", "Job pods with a latest start that were bound before it.", registry=None
        )
        self.latest_start_missed = Counter(
            "forecast_job_latest_start_missed",
            "Job pods with a latest start that came before they were bound; each is counted once.",
            registry=None,
        )
        self.held = Gauge("forecast_job_held_pods", "Job pods that wait for their planned start.", registry=None)
        self.held_seconds = Histogram(
            "forecast_job_held_seconds",
            "How long job pods with slack were held until their release, counted when they have a node or are gone.",
            buckets=_HELD_SECONDS,
            registry=None,
        )
        self.plan_seconds = Histogram(
            "forecast_job_plan_seconds",
            "Time taken to plan the starts of all jobs that wait.",
            buckets=_PLAN_SECONDS,
            registry=None,
        )

    @property
    def collectors(self) -> tuple[Collector, ...]:
        return (
            self.deadline_met,
            self.deadline_missed,
            self.latest_start_met,
            self.latest_start_missed,
            self.held,
            self.held_seconds,
            self.plan_seconds,
        )


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
