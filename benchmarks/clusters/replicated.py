"""Services with 4 to 24 replicas made of single real curves: the two benchmark clusters.

Every service takes the curve of one real VM or server metric, a size that is log-uniform, and replicas that are alike
but not identical. Requests are mean usage times a log-normal error. Nodes are as large as it takes for the cluster's
99th-percentile load to be the wanted share of capacity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path

import numpy as np
import pandas as pd

from base.arrays import AnyFloats, Floats, Floats32, Ints
from benchmarks.clusters.cluster import SLOTS_PER_DAY, Cluster, Service
from benchmarks.clusters.history_directory import write_history
from benchmarks.clusters.placement import place_natively
from benchmarks.clusters.pods import (
    log_uniform,
    normalised,
    pod_name,
    real_residuals,
    replica_noise,
    wrong_requests,
)
from benchmarks.clusters.traces import Curves, read_asd, read_bitbrains
from forecast.resources import CPU, DISK, MEMORY, NETWORK, RESOURCES

GIB = 1024.0**3
N_NODES = 100
BITBRAINS_DAYS = 42
#: What a pod uses at its 99.5th percentile per core of size: memory, disk and network have no natural scale here.
PER_CORE: Mapping[int, float] = {CPU: 1.0, MEMORY: 2 * GIB, DISK: 10e6, NETWORK: 20e6}
#: Daemons of a node as a share of its capacity.
BASE_SHARE = 0.02
#: Where a trace has no memory: what a node has and a pod asks for, so that memory decides nothing.
UNMEASURED_NODE_MEMORY = 128 * GIB
UNMEASURED_POD_MEMORY = 0.25 * GIB
#: Requests of all pods, at most, as a share of allocatable: in whatever order pods come, they all fit.
REQUESTED_SHARE = 0.70


class NodeSizes(Enum):
    """All nodes alike, or three sizes of ratio 1 : 2 : 4 with the same total."""

    EQUAL = "equal"
    MIXED = "mixed"

    def units(self, n_nodes: int) -> Ints:
        """(n_nodes,) relative size of each node."""
        if self is NodeSizes.EQUAL:
            return np.ones(n_nodes, dtype=np.int64)
        third = n_nodes // 3
        return np.repeat([1, 2, 4], [n_nodes - 2 * third, third, third]).astype(np.int64)


def build_asd_cluster(traces: Path, out: Path, seed: int, node_sizes: NodeSizes | str = NodeSizes.EQUAL) -> Cluster:
    """About 1,300 pods of services that peak in the evening, a third of them shifted; CPU only; 45 days."""
    cluster = asd_cluster(read_asd(traces), seed, NodeSizes(node_sizes))
    write_history(cluster, out)
    return cluster


def build_bitbrains_cluster(
    traces: Path, out: Path, seed: int, node_sizes: NodeSizes | str = NodeSizes.EQUAL
) -> Cluster:
    """About 1,500 pods with the CPU, memory, disk and network of real VMs; the trace's last 42 days."""
    cluster = bitbrains_cluster(read_bitbrains(traces), seed, NodeSizes(node_sizes))
    write_history(cluster, out)
    return cluster


def asd_cluster(
    asd: Curves, seed: int, node_sizes: NodeSizes, *, n_pods: int = 1300, n_nodes: int = N_NODES
) -> Cluster:
    """The evening-peak cluster in memory."""
    rng = np.random.default_rng(seed)
    metrics = asd.values["cpu"]
    by_metric: dict[str, list[int]] = {}
    for index, entity in enumerate(asd.entities):
        by_metric.setdefault(entity.split("/")[1], []).append(index)
    # m10 to m18 follow the servers' load.
    load = sorted(index for number in range(10, 19) for index in by_metric.get(f"m{number}", []))
    replicas = _replica_counts(rng, n_pods)
    n_services = len(replicas)
    # Every curve once before any is used again.
    chosen = np.concatenate([rng.permutation(load) for _ in range(n_services // len(load) + 1)])[:n_services]
    shift_hours = np.zeros(n_services, dtype=np.int64)
    shifted = rng.permutation(n_services)[: n_services // 3]
    shift_hours[shifted] = rng.choice([8, 12], len(shifted))
    curves = np.full((n_services, len(RESOURCES), asd.n_slots), np.nan, dtype=np.float32)
    for service in range(n_services):
        curves[service, CPU] = normalised(np.roll(metrics[chosen[service]], 2 * shift_hours[service]))
    names = [asd.entities[index].replace("/", "-") for index in chosen]
    return _assemble(
        rng, asd.start, "UTC", curves, replicas, names, real_residuals(metrics[load]), 0.70, node_sizes.units(n_nodes)
    )


def bitbrains_cluster(
    vms: Curves,
    seed: int,
    node_sizes: NodeSizes,
    *,
    n_pods: int = 1500,
    n_nodes: int = N_NODES,
    days: int = BITBRAINS_DAYS,
) -> Cluster:
    """The cluster of real VMs in memory."""
    rng = np.random.default_rng(seed)
    vms = vms.last_days(days)
    resources = {CPU: "cpu", MEMORY: "memory", DISK: "disk", NETWORK: "network"}
    outage = np.isnan(vms.values["cpu"]).all(axis=0)  # a whole day at the month border
    usable = [
        index
        for index in range(len(vms.entities))
        if all(_usable(vms.values[name][index, ~outage]) for name in resources.values())
    ]
    replicas = _replica_counts(rng, n_pods)
    n_services = len(replicas)
    chosen = np.concatenate([rng.permutation(usable) for _ in range(n_services // len(usable) + 1)])[:n_services]
    curves = np.full((n_services, len(RESOURCES), vms.n_slots), np.nan, dtype=np.float32)
    for resource, name in resources.items():
        for service, index in enumerate(chosen):
            curves[service, resource] = normalised(vms.values[name][index])
    names = [vms.entities[index] for index in chosen]
    residuals = real_residuals(vms.values["cpu"][usable])
    return _assemble(
        rng, vms.start, "Europe/Amsterdam", curves, replicas, names, residuals, 0.60, node_sizes.units(n_nodes)
    )


def _usable(curve: AnyFloats) -> bool:
    """Measured nearly always and busy at least on most days."""
    measured = np.isfinite(curve)
    if measured.mean() < 0.95:
        return False
    days = np.nan_to_num(curve[: len(curve) // SLOTS_PER_DAY * SLOTS_PER_DAY]).reshape(-1, SLOTS_PER_DAY)
    return bool(np.median(days.max(axis=1)) > 0 and np.nanquantile(curve, 0.995) > 0)


def _replica_counts(rng: np.random.Generator, n_pods: int) -> list[int]:
    """Services of 4 to 24 replicas, n_pods together (give or take the last service)."""
    counts: list[int] = []
    while sum(counts) < n_pods - 4:
        counts.append(min(int(rng.integers(4, 25)), max(n_pods - sum(counts), 4)))
    return counts


def _assemble(
    rng: np.random.Generator,
    start: pd.Timestamp,
    time_zone: str,
    curves: Floats32,
    replicas: Sequence[int],
    names: Sequence[str],
    residuals: Floats32,
    load_share: float,
    units: Ints,
) -> Cluster:
    """Curves (n_services, n_resources, n_slots), 1 = 99.5th percentile, become pods on nodes."""
    n_services, n_resources, n_slots = curves.shape
    measured = [resource for resource in range(n_resources) if np.isfinite(curves[:, resource]).any()]
    size = log_uniform(rng, 0.2, 4.0, n_services)  # cores at the 99.5th percentile
    level = np.full((n_services, n_resources), np.nan)
    for resource in measured:
        # Memory hardly follows CPU: a cache is large and idle, a proxy small and busy.
        scale = np.sqrt(np.sqrt(size)) * log_uniform(rng, 0.3, 3.0, n_services) if resource == MEMORY else size
        spread = 1.0 if resource in (CPU, MEMORY) else log_uniform(rng, 0.5, 2.0, n_services)
        level[:, resource] = scale * spread * PER_CORE[resource]
    service_of: Ints = np.repeat(np.arange(n_services), replicas)
    usage = np.full((len(service_of), n_resources, n_slots), np.nan, dtype=np.float32)
    for pod, service in enumerate(service_of):
        for resource in measured:
            noise = replica_noise(rng, residuals, n_slots, jitter=0.01 if resource == MEMORY else 0.05)
            usage[pod, resource] = level[service, resource] * curves[service, resource] * noise
    totals = np.nansum(usage, axis=0, dtype=np.float64)  # (n_resources, n_slots)
    per_unit = np.quantile(totals, 0.99, axis=1) / (load_share - BASE_SHARE) / units.sum()
    per_unit[[r for r in range(n_resources) if r not in measured]] = np.nan
    capacity = units[:, None] * per_unit  # (n_nodes, n_resources)
    base = np.full((len(units), n_resources, n_slots), np.nan, dtype=np.float32)
    outage = np.isnan(curves[:, CPU]).all(axis=0)
    for node in range(len(units)):
        for resource in measured:
            noise = replica_noise(rng, residuals, n_slots, jitter=0.03)
            base[node, resource] = np.where(outage, np.nan, BASE_SHARE * capacity[node, resource] * noise)
    if MEMORY not in measured:
        capacity[:, MEMORY] = units / units.mean() * UNMEASURED_NODE_MEMORY
    allocatable = capacity[:, [CPU, MEMORY]] * 0.97
    request = _requests(rng, usage, service_of, allocatable)
    services, pods = _names(rng, names, replicas, request)
    whole: Ints = np.full(len(pods), n_slots, dtype=np.int64)
    node_of = place_natively(rng, request[service_of], allocatable, np.zeros_like(whole), whole)
    return Cluster(
        time_zone=time_zone,
        holiday_country=None,
        start=start,
        services=services,
        pods=pods,
        service_of=service_of,
        first=np.zeros_like(whole),
        end=whole,
        node_of=node_of,
        usage=usage,
        nodes=tuple(f"node-{number:03d}" for number in range(1, len(units) + 1)),
        base=base,
        capacity=capacity,
        allocatable=allocatable,
    )


def _requests(rng: np.random.Generator, usage: Floats32, service_of: Ints, allocatable: Floats) -> Floats:
    """(n_services, 2) CPU and memory requests of one pod: mean usage times a log-normal error.

    Where nobody measures memory every pod asks for the same little.
    """
    sizes = np.bincount(service_of)
    request = np.full((len(sizes), 2), UNMEASURED_POD_MEMORY)
    for column, (resource, bias, spread) in enumerate([(CPU, 0.4, 0.6), (MEMORY, 0.15, 0.3)]):
        if np.isfinite(usage[:, resource]).any():
            means = np.array([np.nanmean(usage[service_of == s, resource]) for s in range(len(sizes))])
            request[:, column] = wrong_requests(rng, means, bias=bias, spread=spread)
    # What asks for more than there is would not be running: everyone then asks for less.
    request *= np.minimum(1.0, REQUESTED_SHARE * allocatable.sum(axis=0) / (sizes @ request))
    capped: Floats = np.minimum(request, allocatable.mean(axis=0) / 4)
    return capped


def _names(
    rng: np.random.Generator, curves: Sequence[str], replicas: Sequence[int], request: Floats
) -> tuple[tuple[Service, ...], tuple[str, ...]]:
    """Services are called after a number and the curve they have, their pods as a Deployment's are."""
    services: list[Service] = []
    pods: list[str] = []
    for index, (curve, count) in enumerate(zip(curves, replicas, strict=True)):
        name = f"s{index:03d}-{curve}"
        services.append(Service("bench", "Deployment", name, float(request[index, 0]), float(request[index, 1])))
        replica_set = pod_name(rng, f"{name}-##########")
        pods.extend(pod_name(rng, f"{replica_set}-#####") for _ in range(count))
    return tuple(services), tuple(pods)
