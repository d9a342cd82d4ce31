"""A made-up cluster of any size with a model to match: nothing in it is fitted, its curves are drawn at random.

For measuring time and memory, not quality. Every service peaks at its own hour; nodes are of ratio 1 : 2 : 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from base.arrays import Floats32
from forecast.calendar import SLOTS_PER_DAY, Calendar, DayType
from forecast.model import DATED_DAYS, HALF_HOUR_LEVELS, PEAK_QUANTILES, PeakModel, no_runs, no_scores
from forecast.predictors import discover
from forecast.resources import RESOURCES
from forecast.scenarios import SCENARIO_DAYS
from forecast.service_key import Owner, ServiceKey
from kube.objects.objects import NodeInfo, PodInfo, QosClass
from testing.objects import node_info, pod_info

GIB = 2.0**30
_CAPACITY = np.array([8.0, 32 * GIB, 200e6, 1e9, 2e6])
_USAGE = np.array([0.15, 0.6 * GIB, 2e6, 10e6, 2e4])
_SERVICES_PER_NAMESPACE = 50


@dataclass(frozen=True, slots=True)
class LargeCluster:
    """Objects and the model that knows them; pods sit on nodes round-robin by size."""

    model: PeakModel
    nodes: list[NodeInfo]
    pods: list[PodInfo]


def large_cluster(
    n_nodes: int,
    n_pods: int,
    n_services: int,
    *,
    first_day: date,
    seed: int = 0,
    services_per_namespace: int = _SERVICES_PER_NAMESPACE,
) -> LargeCluster:
    """A cluster whose nodes are about half full at their peak."""
    rng = np.random.default_rng(seed)
    services = tuple(
        ServiceKey(f"ns-{i // services_per_namespace:03d}", "Deployment", f"service-{i:05d}") for i in range(n_services)
    )
    names = tuple(f"node-{i:05d}.cluster.example" for i in range(n_nodes))
    size = np.array([1.0, 2.0, 4.0])[np.arange(n_nodes) % 3]
    capacity = size[:, None] * _CAPACITY
    filled = n_pods / size.sum() / 12  # pods per unit of size that the curves below are made for
    model = _model(rng, services, names, capacity, n_pods / n_services, first_day, level=1 / max(filled, 1e-9) / 6)
    nodes = [_node(name, row) for name, row in zip(names, capacity, strict=True)]
    hosts = rng.permutation(np.repeat(np.arange(n_nodes), size.astype(int)))
    pods = [
        _pod(i, services[i % n_services], names[int(hosts[i % len(hosts)])], QosClass(i % 3)) for i in range(n_pods)
    ]
    return LargeCluster(model, nodes, pods)


def _model(
    rng: np.random.Generator,
    services: tuple[ServiceKey, ...],
    nodes: tuple[str, ...],
    capacity: np.ndarray,
    replicas: float,
    first_day: date,
    level: float,
) -> PeakModel:
    n, r, types = len(services), len(RESOURCES), len(DayType)
    hours = np.arange(SLOTS_PER_DAY) / 2
    peak_hour = rng.choice([20.0, 20.0, 20.0, 10.0, 4.0], n) + rng.normal(0, 1.5, n)
    away = np.minimum(np.abs(hours - peak_hour[:, None]), 24 - np.abs(hours - peak_hour[:, None]))
    shape = 0.15 + 0.85 * np.exp(-(away**2) / 8)  # (n, 48)
    sizes = np.exp(rng.normal(0, 0.7, (n, r))) * _USAGE * level
    day: Floats32 = (sizes[:, :, None] * shape[:, None]).astype(np.float32)  # (n, r, 48)
    dated = np.repeat(day[:, :, None], DATED_DAYS, axis=2)
    deviation = np.zeros((n, r, 1, SCENARIO_DAYS, SLOTS_PER_DAY), dtype=np.float32)
    for start in range(0, n, 500):
        block = slice(start, start + 500)
        noise = rng.normal(0, 0.1, deviation[block].shape).astype(np.float32)
        deviation[block] = noise * day[block, :, None, None]
    unknown = np.full((n, r), np.nan, dtype=np.float32)
    base = np.repeat((0.03 * capacity)[:, :, None, None], types, axis=2).astype(np.float32)
    node_z = np.tile(np.array([0.5, 2.0], dtype=np.float32)[: len(PEAK_QUANTILES)], (r, 1))
    return PeakModel(
        calendar=Calendar(),
        first_day=first_day,
        trained_days=28,
        services=services,
        nodes=nodes,
        usage_dated=dated,
        usage_quantiles=np.repeat(dated[:, :, :1], len(HALF_HOUR_LEVELS), axis=2),
        scenario_deviation=deviation,
        usage_day_type=np.repeat(day[:, :, None], types, axis=2),
        replicas_dated=np.full((n, DATED_DAYS, SLOTS_PER_DAY), replicas, dtype=np.float32),
        replicas_day_type=np.full((n, types, SLOTS_PER_DAY), replicas, dtype=np.float32),
        reference_replicas=np.full(n, replicas, dtype=np.float32),
        autoscaled=(np.arange(n) % 10 == 0).astype(np.float32),
        peak_factor=np.tile(np.array([1.05, 1.3], dtype=np.float32)[: len(PEAK_QUANTILES)], (n, r, DATED_DAYS, 1)),
        own_std=0.1 * day,
        shared_std=0.1 * day,
        cluster_std=np.full(r, 0.02, dtype=np.float32),
        node_base=np.repeat(base, SLOTS_PER_DAY, axis=3),
        node_base_std=np.repeat((0.005 * capacity)[:, :, None], SLOTS_PER_DAY, axis=2).astype(np.float32),
        node_z=node_z,
        node_capacity=capacity.astype(np.float32),
        node_capacity_assumed=np.zeros(capacity.shape, dtype=np.float32),
        request_ratio=np.full((r, types, SLOTS_PER_DAY), 0.5, dtype=np.float32),
        predictor_weights=np.full((n, r, len(discover())), 1 / len(discover()), dtype=np.float32),
        peak_weight=np.repeat(unknown[:, :, None, None], types, axis=2).repeat(SLOTS_PER_DAY, axis=3),
        peak_weight_error=unknown,
        peak_weight_prior=unknown,
        identified=np.zeros((n, r), dtype=np.float32),
        correction=np.ones((n, r), dtype=np.float32),
        per_pod_cost=np.zeros((r, types, SLOTS_PER_DAY), dtype=np.float32),
        **no_runs(n),
        **no_scores(n, node_z, len(nodes)),
        data_digest="0" * 64,
    )


def _node(name: str, capacity: np.ndarray) -> NodeInfo:
    amounts = {"cpu": float(capacity[0]), "memory": float(capacity[1]), "pods": 110.0}
    return node_info(
        name,
        labels={"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{len(name) % 3}"},
        allocatable=amounts,
    )


def _pod(number: int, service: ServiceKey, node: str, qos: QosClass) -> PodInfo:
    replica_set = f"{service.name}-5d9c7b6f4d"
    return pod_info(
        f"{replica_set}-{number:05d}",
        uid=f"00000000-0000-4000-8000-{number:012d}",
        namespace=service.namespace,
        node=node,
        labels={"app": service.name, "pod-template-hash": "5d9c7b6f4d"},
        owner=Owner("ReplicaSet", replica_set),
        owner_uid=f"11111111-0000-4000-8000-{number:012d}",
        requests={"cpu": 0.25, "memory": 0.5 * GIB},
        qos=qos,
        started=0.0,
    )
