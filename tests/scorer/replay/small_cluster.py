"""A small cluster with evenings, an autoscaled service and nodes of ratio 1 : 2 : 4, as History and PodUsage."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np

from base.arrays import AnyFloats, Floats, Floats32
from forecast.calendar import SLOTS_PER_DAY, Calendar
from forecast.history import History, Placements, PodUsage
from forecast.resources import CPU, DISK, MEMORY, RESOURCES
from forecast.service_key import ServiceKey

N_DAYS, N_NODES, N_SERVICES = 31, 6, 5
REPLICAS = (4, 4, 4, 4, 3)
AUTOSCALED = 4
EXTRA = 3
"""Pods that the autoscaled service has from 18:00 to 22:00 beside its REPLICAS."""

SIZE = np.array([1.0, 2.0, 4.0, 1.0, 2.0, 4.0])


def curves(seed: int = 0) -> Floats:
    """(n_services, n_days * 48) CPU of one pod: services peak in the morning or in the evening."""
    rng = np.random.default_rng(seed)
    slots = np.arange(N_DAYS * SLOTS_PER_DAY) % SLOTS_PER_DAY
    peak_slot = np.array([40, 40, 18, 18, 40])
    distance = np.abs(slots[None] - peak_slot[:, None])
    shape = 0.1 + 2.0 * np.exp(-((distance / 5.0) ** 2))
    return np.asarray(shape * rng.uniform(0.9, 1.1, shape.shape) * np.array([1.0, 0.6, 1.0, 0.6, 0.8])[:, None])


def small_cluster(seed: int = 0, cpu: Floats | None = None) -> tuple[History, PodUsage]:
    """History and the pods of all its days."""
    cpu = curves(seed) if cpu is None else cpu  # (n_services, n_slots)
    n_slots, n_resources = N_DAYS * SLOTS_PER_DAY, len(RESOURCES)
    usage_of_service = np.full((N_SERVICES, n_resources, n_slots), np.nan)
    usage_of_service[:, CPU] = cpu
    usage_of_service[:, MEMORY] = 1e8
    usage_of_service[:, DISK] = 1e6 * cpu[::-1]
    service, first, end = [], [], []
    for s, n_pods in enumerate(REPLICAS):
        service += [s] * n_pods
        first += [0] * n_pods
        end += [n_slots] * n_pods
    for day in range(N_DAYS):
        service += [AUTOSCALED] * EXTRA
        first += [day * SLOTS_PER_DAY + 36] * EXTRA
        end += [day * SLOTS_PER_DAY + 44] * EXTRA
    service_of, first_slot, end_slot = np.array(service), np.array(first), np.array(end)
    n_pods = len(service_of)
    slots = np.arange(n_slots)
    present = ((slots >= first_slot[:, None]) & (slots < end_slot[:, None])).astype(np.float32)
    usage = np.where(present[:, None] > 0, usage_of_service[service_of], np.nan).astype(np.float32)
    node = np.arange(n_pods) % N_NODES
    pods_on_nodes = np.zeros((N_NODES, n_resources, n_slots))
    np.add.at(pods_on_nodes, node, np.nan_to_num(usage))
    replicas = np.zeros((N_SERVICES, n_slots))
    np.add.at(replicas, service_of, present)
    start = date(2026, 1, 5)
    days = tuple(start + timedelta(days=i) for i in range(N_DAYS))
    services = tuple(ServiceKey("shop", "Deployment", f"service-{s}") for s in range(N_SERVICES))
    capacity = np.full((N_NODES, n_resources), np.nan)
    capacity[:, CPU], capacity[:, MEMORY], capacity[:, DISK] = 2.2 * SIZE, 4e9 * SIZE, 4e6 * SIZE
    requests = np.column_stack([np.array([0.3, 0.5, 0.2, 0.6, 0.3]), np.full(N_SERVICES, 1.5e8)])
    history = History(
        calendar=Calendar(),
        days=days,
        services=services,
        nodes=tuple(f"node-{i}" for i in range(N_NODES)),
        usage_per_pod=by_day(usage_of_service),
        replicas=by_day(replicas),
        pod_variance=by_day(np.zeros((N_SERVICES, n_resources, n_slots))),
        node_usage=by_day(pods_on_nodes + 0.05),
        node_pod_usage=by_day(pods_on_nodes),
        placements=Placements(np.arange(n_pods), service_of, node, first_slot, end_slot),
        capacity=capacity,
        allocatable=capacity[:, :2].copy(),
        daily_requests=np.repeat(requests[:, :, None], N_DAYS, axis=2),
    )
    pods = PodUsage(
        days=days,
        services=services,
        pods=tuple(f"shop/pod-{i}" for i in range(n_pods)),
        service=service_of,
        requests=requests[service_of],
        usage=by_day(usage),
        present=by_day(present),
        node=node,
        row=np.arange(n_pods),
    )
    return history, pods


def by_day(by_slot: AnyFloats) -> Floats32:
    """(..., n_days * 48) -> (..., n_days, 48)."""
    return by_slot.reshape(*by_slot.shape[:-1], -1, SLOTS_PER_DAY).astype(np.float32)
