"""What the CPU request of a pod has to cover in each half hour, so that nodes full of requests stay cool.

kube-scheduler adds requests up and knows no hours. A node is full when its requests reach its allocatable cores:

    sum of requests <= allocatable

It is cool while usage stays below 80 % of capacity, at each half hour t. So a pod that uses u(t) has to request

    need(t) = (u(t) + errors * std(t)) / 0.8 * (allocatable / capacity)

If all pods requested the highest need of their own, no node could be hot, and much would stay unused: own peaks do not
come together. What matters is the half hours in which the whole cluster is busy. So the need of a half hour counts by
(load of the cluster then / its highest load) ^ quiet_discount: all of it at the peak, little at night. A quantile of
the pod's own use is the floor.

Disk, network and log make nodes hot as well, and have no requests. The CPU request stands for a share of the need of
them, in units of CPU: share of the cluster's capacity * the cluster's cores.
"""

from __future__ import annotations

import numpy as np

from autoscaling.requests.options import RequestOptions
from autoscaling.requests.use import ServiceUse
from forecast.arrays import Floats
from forecast.resources import CPU, HOT_RESOURCES, HOT_SHARE


def cpu_needs(use: ServiceUse, options: RequestOptions) -> tuple[Floats, Floats]:
    """Cores that a request has to cover by half hour, and cores for the pod's own use: (n_services, n_slots) each."""
    n_services, _, n_slots = use.mean.shape
    need, own = np.zeros((n_services, n_slots)), np.zeros((n_services, n_slots))
    for resource in HOT_RESOURCES:
        part = 1.0 if resource == CPU else options.carried
        if part <= 0 or not use.capacity[resource] > 0:
            continue
        per_unit = part * _cores_per_unit(use, resource)
        mean, weight = use.mean[:, resource], busy_weights(use, resource, options.quiet_discount)
        need = np.maximum(need, (mean + options.errors * use.std[:, resource]) * weight * per_unit)
        own = np.maximum(own, mean * per_unit)
    return need, own


def busy_weights(use: ServiceUse, resource: int, quiet_discount: float) -> Floats:
    """How much each half hour counts, by how busy the cluster is expected to be: (n_slots,), 1 at its peak."""
    load = (use.mean[:, resource] * use.replicas).sum(axis=0)
    highest = load.max(initial=0.0)
    if highest <= 0:
        return np.ones(len(load))
    return np.asarray((load / highest) ** quiet_discount)


def _cores_per_unit(use: ServiceUse, resource: int) -> float:
    """Cores of requests for a unit of usage, such that a node full of requests is at the hot limit."""
    cores = use.allocatable[CPU] if np.isfinite(use.allocatable[CPU]) else use.capacity[CPU]
    return float(cores / (HOT_SHARE * use.capacity[resource]))
