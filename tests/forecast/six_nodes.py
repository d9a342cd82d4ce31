"""Six nodes of 4 cores, made as arrays: web on all of them, and pods that are measured nowhere or come for an hour."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from base.arrays import Floats
from forecast.calendar import SLOTS_PER_DAY, Calendar
from forecast.history import History, Placements
from forecast.resources import CPU, RESOURCES
from forecast.service_key import ServiceKey

N_NODES, N_DAYS = 6, 9
WEB, MAIL, ETL = (
    ServiceKey("shop", "Deployment", "web"),
    ServiceKey("shop", "Deployment", "mail"),
    ServiceKey("batch", "Workflow", "etl-*"),
)
_EVENING = 0.6 + 0.6 * np.exp(-(((np.arange(SLOTS_PER_DAY) / 2 - 20 + 12) % 24 - 12) ** 2) / 18)
WEB_POD: Floats = 0.14 * _EVENING
MAIL_POD: Floats = 0.305 * _EVENING / _EVENING.mean()
BASE, NODE_CORES = 0.2, 4.0


def history_of(other: ServiceKey, pods: list[int], *, request_cores: float = 0.2) -> History:
    """Two pods of web on each node, and pods of another service that is not measured, `pods` of it on each node."""
    rng = np.random.default_rng(0)
    shape = (N_DAYS, SLOTS_PER_DAY)
    runs = [(service, node) for node in range(N_NODES) for service, n in ((0, 2), (1, pods[node])) for _ in range(n)]
    service, node = np.array(runs).T
    usage = np.full((2, len(RESOURCES), *shape), np.nan, dtype=np.float32)
    usage[0, CPU] = WEB_POD * (1 + 0.02 * rng.standard_normal(shape))
    total, of_pods = (np.full((N_NODES, len(RESOURCES), *shape), np.nan, dtype=np.float32) for _ in range(2))
    of_pods[:, CPU] = 2 * WEB_POD * (1 + 0.02 * rng.standard_normal((N_NODES, *shape)))
    total[:, CPU] = BASE + of_pods[:, CPU] + np.array(pods)[:, None, None] * MAIL_POD
    capacity = np.full((N_NODES, len(RESOURCES)), np.nan)
    capacity[:, :2] = NODE_CORES, 16e9
    replicas = np.ones((2, *shape), dtype=np.float32) * np.array([2 * N_NODES, sum(pods)])[:, None, None]
    requests = np.array([[0.2, 2e8], [request_cores, 2e8]])
    return History(
        calendar=Calendar("UTC"),
        days=tuple(date(2026, 3, 2) + timedelta(days=day) for day in range(N_DAYS)),
        services=(WEB, other),
        nodes=tuple(f"node-{n}" for n in range(N_NODES)),
        usage_per_pod=usage,
        replicas=replicas,
        pod_variance=np.full_like(usage, np.nan),
        node_usage=total,
        node_pod_usage=of_pods,
        placements=Placements(
            np.arange(len(runs)), service, node, np.zeros(len(runs), dtype=np.int64), np.full(len(runs), N_DAYS * 48)
        ),
        capacity=capacity,
        allocatable=capacity[:, :2],
        daily_requests=np.repeat(requests[:, :, None], N_DAYS, axis=2),
    )


def with_nights_of_etl() -> History:
    """Instead of mail, pods with generated names: from 1:00 to 5:00 1.5 cores of them a node on average."""
    rng = np.random.default_rng(1)
    history = history_of(ETL, [0] * N_NODES)
    usage, replicas = history.usage_per_pod.copy(), history.replicas.copy()
    one_off = np.zeros_like(history.node_usage)
    count = rng.poisson(3, (N_NODES, N_DAYS, 8))
    one_off[:, CPU, :, 2:10] = 0.5 * count
    usage[1, CPU, :, 2:10], replicas[1, :, 2:10] = 0.5, count.sum(axis=0)
    return replace(
        history,
        usage_per_pod=usage,
        replicas=replicas,
        node_usage=history.node_usage + one_off,
        node_pod_usage=history.node_pod_usage + one_off,
        one_off_usage=one_off,
    )
