"""An installation in which every part runs and nothing is wrong, as the figures that Prometheus scrapes from it.

Figures are written for minutes from 0 on, so that promtool and a real exporter play the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

HOUR, DAY = 3600.0, 86400.0
OURS: Final = "forecast-scheduler-"
REPLICAS: Final[Mapping[str, int]] = {
    "scorer": 1,
    "schedule": 2,
    "extender": 1,
    "advisor": 1,
    "webhook": 2,
    "rebalancer": 1,
    "autoscaler": 1,
    "trainer": 1,
    "kube-state-metrics": 1,
}
"""Targets by part; the last two are none of ours: a textfile of the nightly run, and pods as the cluster has them."""

FOLLOWING: Final = ("scorer", "schedule", "extender", "advisor", "rebalancer", "autoscaler")
"""Parts that follow the cluster with a scorer inside."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One series of a target.

    part, replica : which target
    value         : at minute 0; of a moment its age in seconds, negative = it is still to come
    a_minute      : growth
    is_moment     : a unix time is exported
    """

    part: str
    name: str
    value: float
    a_minute: float = 0.0
    labels: tuple[tuple[str, str], ...] = ()
    replica: int = 0
    is_moment: bool = False

    def at(self, minute: float, now: float) -> float:
        """Return what is exported. now: unix seconds at that minute."""
        if self.is_moment:
            return now - self.value - 60 * minute
        return self.value + self.a_minute * minute

    @property
    def selector(self) -> str:
        """The series without its target's labels, as it is exposed."""
        inside = ",".join(f'{name}="{value}"' for name, value in self.labels)
        return f"{self.name}{{{inside}}}"


def healthy() -> list[Figure]:
    """Return the figures of all parts, as Prometheus would scrape them now."""
    return [replace(one, replica=replica) for one in _of_parts() for replica in range(REPLICAS[one.part])]


def target_labels(part: str, replica: int) -> dict[str, str]:
    """Return the labels job and instance."""
    ours = part not in ("trainer", "kube-state-metrics")
    return {"job": f"{OURS}{part}" if ours else part, "instance": f"{part}-{replica}"}


def _of_parts() -> Iterator[Figure]:
    for part in FOLLOWING:
        yield from _following(part)
    for part in ("schedule", "advisor"):
        yield Figure(part, "forecast_leader", 1)
        yield Figure(part, "forecast_scheduling_loop_age_seconds", 1)
        yield Figure(part, "forecast_assumed_pods", 0)
        yield Figure(part, "forecast_bindings_in_flight", 0)
        yield Figure(part, "forecast_pending_pods", 0, labels=(("queue", "active"),))
        for result, a_minute in (("scheduled", 10.0), ("error", 0.0)):
            yield Figure(part, "forecast_schedule_attempts_total", 0, a_minute, (("result", result),))
    yield Figure("advisor", "forecast_gated_by_quota_pods", 0)
    yield Figure("advisor", "forecast_nominations_followed", 1)
    for part in ("advisor", "webhook"):
        yield Figure(part, "forecast_gated_longest_seconds", 1)
    yield Figure("webhook", "forecast_webhook_ready", 1)
    yield Figure("webhook", "forecast_webhook_bindings_broken", 0)
    yield Figure("webhook", "forecast_webhook_unadvised_pods_total", 0, labels=(("because", "no_advisor"),))
    end = "forecast_webhook_certificate_expiry_timestamp_seconds"
    yield Figure("webhook", end, -60 * DAY, is_moment=True)
    for outcome, a_minute in (("shaped", 10.0), ("failed", 0.0)):
        yield Figure("webhook", "forecast_webhook_reviews_total", 0, a_minute, (("outcome", outcome),))
    for part in ("scorer", "extender"):
        yield from _of_nodes(part)
    yield Figure("extender", "forecast_policy_document_valid", 1)
    for outcome, a_minute in (("answered", 10.0), ("late", 0.0), ("failed", 0.0)):
        yield Figure("extender", "forecast_extender_requests_total", 0, a_minute, (("outcome", outcome),))
    yield Figure("rebalancer", "forecast_rebalance_leading", 1)
    yield Figure("rebalancer", "forecast_rebalance_held_up", 0)
    yield Figure("rebalancer", "forecast_rebalance_stood_down", 0)
    yield Figure("rebalancer", "forecast_rebalance_mode", 1, labels=(("mode", "on"),))
    yield Figure("rebalancer", "forecast_rebalance_moves_total", 0, labels=(("state", "stuck"),))
    for name, value in (("leading", 1), ("held_up", 0), ("has_forecast", 1), ("acting", 1)):
        yield Figure("autoscaler", f"forecast_autoscale_{name}", value)
    yield Figure("trainer", "forecast_train_last_success_timestamp_seconds", 5 * HOUR, is_moment=True)
    for name, pods in (("data_gap_slots", 10.0), ("data_expected_slots", 1000.0)):
        yield Figure("trainer", f"forecast_train_{name}", pods, labels=(("resource", "cpu"),))
    yield from _pod("runs", HOUR)


def _following(part: str) -> Iterator[Figure]:
    yield Figure(part, "forecast_model_age_seconds", 12 * HOUR, 60)
    yield Figure(part, "process_start_time_seconds", 10 * HOUR, is_moment=True)
    for name, value in (
        ("ready", 1.0),
        ("degradation_level", 0.0),
        ("cluster_state_age_seconds", 5.0),
        ("usage_age_seconds", 20.0),
        ("model_refused", 0.0),
        ("self_check_drift", 0.0),
        ("unknown_service_pods", 3.0),
        ("seen_gated_longest_seconds", 1.0),
    ):
        yield Figure(part, f"forecast_{name}", value)
    yield Figure(part, "forecast_cluster_objects", 100, labels=(("kind", "pods"),))


def _of_nodes(part: str) -> Iterator[Figure]:
    for node in ("n1", "n2", "n3"):
        for resource in ("cpu", "memory"):
            of = (("node", node), ("resource", resource))
            yield Figure(part, "forecast_node_capacity", 100, labels=of)
            peak, today = "forecast_node_predicted_peak", (*of, ("day", "today"))
            yield Figure(part, f"{peak}_timestamp_seconds", -6 * HOUR, labels=today, is_moment=True)
            for quantile, share in (("0.5", 50.0), ("0.95", 70.0)):
                yield Figure(part, peak, share, labels=(*today, ("as_of", "now"), ("quantile", quantile)))


def _pod(name: str, age: float) -> Iterator[Figure]:
    pod = (("namespace", "shop"), ("pod", name), ("uid", name))
    yield Figure("kube-state-metrics", "kube_pod_created", age, labels=pod, is_moment=True)


def gated_pod(age: float) -> list[Figure]:
    """Return what kube-state-metrics says of a pod in SchedulingGated. age: seconds at minute 0"""
    (created,) = _pod("gated", age)
    reason = (*created.labels, ("reason", "SchedulingGated"))
    return [created, Figure("kube-state-metrics", "kube_pod_status_reason", 1, labels=reason)]
