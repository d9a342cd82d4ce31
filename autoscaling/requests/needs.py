"""What the CPU request of a pod has to cover in each half hour, so that nodes full of requests stay cool.

kube-scheduler adds requests up and knows no hours. A node is full when its requests reach its allocatable cores:

    sum of requests <= allocatable

It is cool while usage stays below 80 % of capacity, at each half hour t. So a pod that uses u(t) has to request

    need(t) = (u(t) + error share(t)) / 0.8 * (allocatable / capacity)

Errors of many pods on a node partly cancel out: their standard deviation is S = sqrt(sum of std^2). So pods share
`errors` * S out as each contributes to it (Euler allocation: Tasche, "Capital allocation to business units", 2007):

    error share = errors * std^2 / S

S is that of a mean node when the cluster is filled with pods like these. A bursty pod gets much, a calm one little.

If all pods requested the highest need of their own, no node could be hot, and much would stay unused: own peaks do not
come together. What matters is the half hours in which the whole cluster is busy. So the need of a half hour counts by
(load of the cluster then / its highest load) ^ quiet_discount: all of it at the peak, little at night. A quantile of
the pod's own use is the floor. Requests that follow the hour have no such discount: each covers its own hours.

Disk, network and log make nodes hot as well, and have no requests. The CPU request stands for a share of the need of
them, in units of CPU: share of the cluster's capacity * the cluster's cores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autoscaling.requests.options import RequestOptions
from autoscaling.requests.use import ServiceUse
from base.arrays import Floats
from forecast.resources import CPU, HOT_RESOURCES, HOT_SHARE


@dataclass(frozen=True, slots=True)
class CpuNeeds:
    """Cores, (n_services, n_slots) each.

    hourly   : that a request of the half hour alone has to cover
    weighted : that a request of the whole week has to cover, less where the cluster is quiet
    own      : for the pod's expected use alone, without errors: a quantile of it is the floor
    """

    hourly: Floats
    weighted: Floats
    own: Floats


def cpu_needs(use: ServiceUse, options: RequestOptions) -> CpuNeeds:
    """Cores that requests have to cover by half hour."""
    n_services, _, n_slots = use.mean.shape
    hourly, weighted, own = (np.zeros((n_services, n_slots)) for _ in range(3))
    for resource in HOT_RESOURCES:
        part = 1.0 if resource == CPU else options.carried
        if part <= 0 or not use.capacity[resource] > 0:
            continue
        per_unit = part * _cores_per_unit(use, resource)
        mean = use.mean[:, resource]
        need = (mean + options.errors * error_shares(use, resource)) * per_unit
        hourly = np.maximum(hourly, need)
        weighted = np.maximum(weighted, need * busy_weights(use, resource, options.quiet_discount))
        own = np.maximum(own, mean * per_unit)
    return CpuNeeds(hourly, weighted, own)


def error_shares(use: ServiceUse, resource: int) -> Floats:
    """What one pod adds to the standard deviation of a full node: (n_services, n_slots), base units."""
    variance = use.std[:, resource] ** 2
    load = (use.mean[:, resource] * use.replicas).sum(axis=0)
    highest = load.max(initial=0.0)
    if highest <= 0 or use.n_nodes <= 0:
        return np.zeros_like(variance)
    times = HOT_SHARE * use.capacity[resource] / highest  # so many times these pods fill the cluster
    of_node = np.sqrt((variance * use.replicas).sum(axis=0) * times / use.n_nodes)  # (n_slots,)
    return np.asarray(np.where(of_node > 0, variance / np.where(of_node > 0, of_node, 1.0), 0.0))


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
