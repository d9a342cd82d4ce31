"""Whether queries answer in base units. Pure; only clear cases are refused.

    found                                                        what it means
    nodes use more than 3 x their capacity                       node_cpu in millicores or percent, node_memory too high
    pods of a node use more than 5 x what the node uses          pod_* or node_* in another unit
    half of the nodes have more than 2,000 cores                 node_capacity in millicores
    half of the nodes use less than 16 MiB of memory             KiB or MiB; no node runs a kubelet in that
    half of the pods use less than 64 KiB of memory              KiB or MiB; the smallest process needs more

An idle cluster passes: nothing is said about low CPU. Medians over at least three nodes: one broken node is no unit.
Disk and network are not compared: bytes between pods of one node never pass its interface, caches absorb reads.
"""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Floats
from base.errors import InputError
from forecast.resources import CPU, MEMORY

_ABOVE_CAPACITY = 3.0
_ABOVE_NODE = 5.0
_LEAST_NODE_MEMORY = 16 * 2.0**20
_LEAST_POD_MEMORY = 64 * 2.0**10
_MOST_CORES = 2_000.0  # the largest machine that clouds rent out has 1,920
_FEWEST = 3
_UNITS = {CPU: ("cpu", "cores"), MEMORY: ("memory", "bytes")}


def check_units(node_usage: AnyFloats, capacity: Floats, pod_sums: AnyFloats, pod_memory: AnyFloats) -> None:
    """Raise InputError naming query, what was found and the unit that is meant.

    node_usage : (n_nodes, n_resources) median over time of what each node uses; NaN = not measured
    capacity   : (n_nodes, n_resources) NaN = unknown
    pod_sums   : (n_nodes, n_resources) median over time of the sum over each node's pods
    pod_memory : (n_pods,) median over time
    """
    if (cores := _median(capacity[:, CPU])) > _MOST_CORES:
        raise InputError(
            f"query node_capacity returns {cores:,.0f} cores at the median of the nodes: kube_node_status_capacity "
            "must be in cores, correct prometheus.queries.node_capacity"
        )
    for resource, (name, unit) in _UNITS.items():
        share = _median(node_usage[:, resource] / capacity[:, resource])
        if share > _ABOVE_CAPACITY:
            raise InputError(
                f"query node_{name} returns {share:,.0f} times what the nodes have (median of the nodes): it must be "
                f"in {unit}, correct prometheus.queries.node_{name}"
            )
    for name, usage, least in (
        ("node_memory", node_usage[:, MEMORY], _LEAST_NODE_MEMORY),
        ("pod_memory", pod_memory, _LEAST_POD_MEMORY),
    ):
        if _median(usage) < least:
            raise InputError(
                f"query {name} returns {_median(usage):,.0f} at the median, too little for bytes: it must be in bytes "
                f"(not KiB or MiB), correct prometheus.queries.{name}"
            )
    for resource, (name, unit) in _UNITS.items():
        with np.errstate(divide="ignore"):
            share = _median(
                pod_sums[:, resource] / np.where(node_usage[:, resource] > 0, node_usage[:, resource], np.nan)
            )
        if share > _ABOVE_NODE:
            raise InputError(
                f"query pod_{name} adds up to {share:,.0f} times what node_{name} says of the nodes: both must be in "
                f"{unit}, correct prometheus.queries.pod_{name} or prometheus.queries.node_{name}"
            )


def _median(values: AnyFloats) -> float:
    """Median of what is measured; NaN, which compares false with everything, if that is too little to judge."""
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) >= _FEWEST else float("nan")
