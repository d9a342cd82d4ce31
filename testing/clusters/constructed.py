"""Clusters whose truth is known: what every pod and every node uses, and how the pods move about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np

from base.arrays import Bools, Floats, Floats32, Ints
from forecast.calendar import SLOTS_PER_DAY, Calendar
from forecast.history import History, Placements
from forecast.peak_weights.pods_on_nodes import day_counts
from forecast.resources import LOG, RESOURCES
from forecast.service_key import ServiceKey

MONDAY = date(2026, 5, 4)
HOURS = np.arange(SLOTS_PER_DAY) / 2
LEVELS = np.array([0.5, 1e9, 2e6, 4e6, 2e4])
CAPACITY = np.array([16.0, 64e9, 3e8, 6e8, 3e6])


@dataclass(frozen=True, slots=True)
class Truth:
    """What the history was made from, before noise, base units.

    weight : (n_services, n_resources, n_days, 48) what one pod uses itself
    factor : (n_services, n_resources) how much more it adds to a node than it uses itself
    cost   : (n_resources,) what each pod costs the node besides, at the evening peak
    nodes  : (n_nodes, n_resources, n_days, 48) usage of the nodes
    """

    weight: Floats32
    factor: Floats
    cost: Floats
    nodes: Floats32


def constructed(
    *,
    n_services: int = 60,
    n_nodes: int = 30,
    n_days: int = 14,
    replicas: tuple[int, int] = (3, 12),
    unmeasured: tuple[int, ...] = (LOG,),
    noise: float = 0.05,
    factor_share: float = 0.0,
    cost_share: float = 0.0,
    node_deviation: float = 0.0,
    seed: int = 0,
) -> tuple[History, Truth]:
    """Evening, morning and flat services on nodes of ratio 1 : 2 : 4; each is released once a week and reshuffled.

    unmeasured     : resources that no pod is measured for
    factor_share   : share of the services that add 40 % more to a node than they are measured to use
    cost_share     : what pods cost the node besides, as a share of their typical usage, at the evening peak
    node_deviation : how far the bases of single nodes lastingly are from those of their size, relative
    """
    rng = np.random.default_rng(seed)
    days = tuple(MONDAY + timedelta(days=i) for i in range(n_days))
    weekend = np.array([day.weekday() >= 5 for day in days])
    weight = _curves(rng, n_services, weekend)
    least, most = np.log(replicas)
    n_replicas: Ints = np.round(np.exp(rng.uniform(least, most, n_services))).astype(np.int64)
    autoscaled = rng.random(n_services) < 0.25
    size = np.array([1.0, 2.0, 4.0])[rng.permutation(np.arange(n_nodes) % 3)]
    placements = _placements(rng, n_replicas, autoscaled, size, days)
    factor = np.where(rng.random(n_services) < factor_share, 1.4, 1.0)[:, None] * np.ones(len(RESOURCES))
    factor[:, list(unmeasured)] = 1.0
    cost = cost_share * LEVELS
    cost[list(unmeasured)] = 0.0
    evening = _bump(20.0, 3.0)

    shape = (n_nodes, len(RESOURCES), n_days, SLOTS_PER_DAY)
    nodes, pods = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32)
    count = np.zeros((n_services, n_days, SLOTS_PER_DAY), dtype=np.float32)
    per_pod = n_replicas.sum() / size.sum()
    base = 0.25 * per_pod * size[:, None, None] * LEVELS[:, None] * (0.7 + 0.3 * evening)
    base = base * np.exp(node_deviation * rng.standard_normal((n_nodes, 1, 1)))
    for d in range(n_days):
        begin = d * SLOTS_PER_DAY
        table = day_counts(placements.between(begin, begin + SLOTS_PER_DAY), n_services, n_nodes)
        present = np.asarray(table.sum(axis=1)).reshape(SLOTS_PER_DAY, n_nodes)
        count[:, d] = np.asarray(table.sum(axis=0)).reshape(SLOTS_PER_DAY, n_services).T

        def summed(usage: Floats32, table=table) -> Floats32:  # type: ignore[no-untyped-def]
            columns = usage.transpose(2, 0, 1).reshape(-1, len(RESOURCES))
            return np.asarray((table @ columns).reshape(SLOTS_PER_DAY, n_nodes, -1).transpose(1, 2, 0))

        pods[:, :, d] = summed(weight[:, :, d])
        extra = present.T[:, None] * cost[:, None] * evening
        nodes[:, :, d] = base + extra + summed((weight[:, :, d] * factor[:, :, None]).astype(np.float32))
    measured_nodes = nodes * np.exp(noise * rng.standard_normal(shape, dtype=np.float32))
    usage = weight * np.exp(0.02 * rng.standard_normal(weight.shape, dtype=np.float32))
    usage[:, list(unmeasured)] = np.nan
    usage = np.where(count[:, None] > 0, usage, np.nan).astype(np.float32)
    pods[:, list(unmeasured)] = np.where(pods[:, list(unmeasured)] > 0, np.nan, 0.0)
    requests = weight[:, :2].mean(axis=(2, 3)) * np.exp(rng.normal(0.4, 0.6, (n_services, 2)))
    history = History(
        calendar=Calendar(),
        days=days,
        services=tuple(ServiceKey("shop", "Deployment", f"service-{i:05d}") for i in range(n_services)),
        nodes=tuple(f"node-{i:05d}" for i in range(n_nodes)),
        usage_per_pod=usage,
        replicas=count,
        pod_variance=np.full_like(usage, np.nan),
        node_usage=measured_nodes,
        node_pod_usage=pods,
        placements=placements,
        capacity=size[:, None] * CAPACITY,
        allocatable=size[:, None] * CAPACITY[:2],
        daily_requests=np.repeat(requests[:, :, None], n_days, axis=2),
    )
    return history, Truth(weight, factor, cost, nodes)


def hide(history: History, truth: Truth, resource: int, hidden: Bools) -> History:
    """The history as if no pod of the `hidden` services, (n_services,), had been measured for a resource."""
    usage, pods = history.usage_per_pod.copy(), history.node_pod_usage.copy()
    usage[hidden, resource] = np.nan
    seen = np.where(hidden[:, None, None], 0.0, truth.weight[:, resource])
    for d in range(history.n_days):
        begin = d * SLOTS_PER_DAY
        placements = history.placements.between(begin, begin + SLOTS_PER_DAY)
        table = day_counts(placements, len(history.services), len(history.nodes))
        columns = np.stack([seen[:, d].T, np.tile(hidden, (SLOTS_PER_DAY, 1)), np.tile(~hidden, (SLOTS_PER_DAY, 1))])
        total, n_hidden, n_seen = (table @ columns.reshape(3, -1).T).T.reshape(3, SLOTS_PER_DAY, -1)
        pods[:, resource, d] = np.where((n_hidden > 0) & (n_seen == 0), np.nan, total).T
    return replace(history, usage_per_pod=usage, node_pod_usage=pods)


def _bump(hour: float, width: float) -> Floats:
    away = np.minimum(np.abs(HOURS - hour), 24 - np.abs(HOURS - hour))
    return np.asarray(np.exp(-0.5 * (away / width) ** 2))


def _curves(rng: np.random.Generator, n_services: int, weekend: Bools) -> Floats32:
    """(n_services, n_resources, n_days, 48): three kinds of day, sizes over two orders of magnitude."""
    kind = rng.random(n_services)
    hour = np.where(kind < 0.6, 20.0, 9.0) + rng.normal(0, 0.7, n_services)
    shapes = np.stack([0.1 + 0.9 * _bump(h, 2.0) for h in hour])
    shapes[kind > 0.8] = 0.5
    level = np.exp(rng.normal(0, 0.8, (n_services, 1))) * np.exp(rng.normal(0, 0.4, (n_services, len(RESOURCES))))
    on_weekends = np.where(weekend, rng.uniform(0.5, 1.1, n_services)[:, None], 1.0)
    curve = shapes[:, None] * on_weekends[:, :, None]  # (n_services, n_days, 48)
    return np.asarray((level * LEVELS)[:, :, None, None] * curve[:, None], dtype=np.float32)


def _placements(
    rng: np.random.Generator, replicas: Ints, autoscaled: Bools, size: Floats, days: tuple[date, ...]
) -> Placements:
    """Pods on random nodes, larger nodes more; a release moves all pods of its service to new ones at 10:00."""
    n_days, end = len(days), len(days) * SLOTS_PER_DAY
    first, last, service = [], [], []
    weekday = rng.integers(0, 5, len(replicas))
    for s, count in enumerate(replicas):
        releases = [d * SLOTS_PER_DAY + 20 for d in range(n_days) if days[d].weekday() == weekday[s]]
        borders = np.array([0, *releases, end])
        first.append(np.repeat(borders[:-1], count))
        last.append(np.repeat(borders[1:], count))
        if autoscaled[s]:
            evenings = np.repeat(np.arange(n_days) * SLOTS_PER_DAY, count // 2 + 1)
            first.append(evenings + 34)
            last.append(evenings + 46)
        service.append(np.full(len(first[-1]) + (len(first[-2]) if autoscaled[s] else 0), s))
    of_service = np.concatenate(service)
    return Placements(
        pod=np.arange(len(of_service)),
        service=of_service,
        node=rng.choice(len(size), len(of_service), p=size / size.sum()),
        first=np.concatenate(first),
        end=np.concatenate(last),
    )
