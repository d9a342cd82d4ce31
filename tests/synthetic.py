"""A small cluster with known truth, built straight into the arrays of a `History`."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.calendar import SLOTS_PER_DAY, Calendar
from forecast.history import History, Placements
from forecast.resources import RESOURCES
from forecast.service_key import ServiceKey

MONDAY = date(2026, 5, 4)

HOURS = np.arange(SLOTS_PER_DAY) / 2


def evening_shape() -> Floats:
    """Quiet at night, ten times as much at 20:00: (48,)."""
    return 0.1 + 0.9 * np.exp(-((HOURS - 20) ** 2) / 8)


def synthetic_history(
    *,
    n_services: int = 6,
    n_nodes: int = 4,
    n_days: int = 28,
    replicas: int = 4,
    noise: float = 0.05,
    seed: int = 0,
    first_day: date = MONDAY,
    calendar: Calendar = Calendar(),  # noqa: B008 - frozen
) -> History:
    """Services with an evening peak at levels 1, 2, ... cores; weekends at 70 %; pods spread round-robin over nodes."""
    rng = np.random.default_rng(seed)
    days = tuple(first_day + timedelta(days=i) for i in range(n_days))
    weekend = np.array([0.7 if day.weekday() >= 5 else 1.0 for day in days])
    level = np.arange(1.0, n_services + 1)
    curve = level[:, None, None] * weekend[:, None] * evening_shape()  # (n_services, n_days, 48)
    usage = np.repeat(curve[:, None], len(RESOURCES), axis=1)
    usage = usage * np.exp(noise * rng.normal(size=usage.shape))
    count = np.full((n_services, n_days, SLOTS_PER_DAY), float(replicas))
    n_pods = n_services * replicas
    placements = Placements(
        pod=np.arange(n_pods),
        service=np.arange(n_pods) // replicas,
        node=np.arange(n_pods) % n_nodes,
        first=np.zeros(n_pods, dtype=np.int64),
        end=np.full(n_pods, n_days * SLOTS_PER_DAY),
    )
    counts = placements.counts(n_services, n_nodes, 0)
    pods = np.einsum("ns,srdt->nrdt", counts, usage)
    return History(
        calendar=calendar,
        days=days,
        services=tuple(ServiceKey("shop", "Deployment", f"service-{i}") for i in range(n_services)),
        nodes=tuple(f"node-{i}" for i in range(n_nodes)),
        usage_per_pod=usage.astype(np.float32),
        replicas=count.astype(np.float32),
        pod_variance=np.full(usage.shape, (0.05 * usage) ** 2, dtype=np.float32),
        node_usage=(pods + 0.5).astype(np.float32),
        node_pod_usage=pods.astype(np.float32),
        placements=placements,
        capacity=np.full((n_nodes, len(RESOURCES)), 40.0),
        allocatable=np.full((n_nodes, 2), 40.0),
        daily_requests=np.broadcast_to(level[:, None, None] / 2, (n_services, 2, n_days)),
    )


def scaled(history: History, service: int, factor: AnyFloats) -> History:
    """The history with one service's usage per pod multiplied by a factor per day, (n_days,)."""
    usage = history.usage_per_pod.copy()
    usage[service] *= factor[:, None]
    return replace(history, usage_per_pod=usage.astype(np.float32))
