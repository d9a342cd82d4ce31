"""Whether what was read of a day fits together: names and places that different agents tell meet, and queries answer
in base units. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32
from base.errors import InputError
from forecast.resources import CPU, MEMORY
from trainer.prometheus.day_tables import Remark, some
from trainer.prometheus.node_names import NodeFacts
from trainer.prometheus.pods_of_day import PodsOfDay
from trainer.prometheus.shape_reading import Recognised

_MANY_NODES, _MANY_PODS = 3, 10

_ABOVE_CAPACITY = 3.0
_ABOVE_NODE = 5.0
_LEAST_NODE_MEMORY = 16 * 2.0**20
_LEAST_POD_MEMORY = 64 * 2.0**10
_MOST_CORES = 2_000.0  # the largest machine that clouds rent out has 1,920
_FEWEST = 3
_UNITS = {CPU: ("cpu", "cores"), MEMORY: ("memory", "bytes")}


def remarks_of_shapes(recognised: Sequence[Recognised]) -> list[Remark]:
    """How usage was read that does not come as kube-prometheus exposes it."""
    return [Remark(f"shape: {one.shape.name}", str(one), wrong=False) for one in recognised]


def check_places(pods: PodsOfDay, seen: Collection[str], facts: NodeFacts) -> None:
    """Raise InputError if kube-state-metrics puts all pods on one node of several.

    seen : the nodes that are measured, without machines outside
    """
    nodes = {life.node for life in pods.lives}
    if len(nodes) != 1 or len(pods.pods) < _MANY_PODS:
        return
    node = next(iter(nodes))
    # A scrape that overwrites the label gives the one node the addresses of all.
    n_nodes = max(len(seen), sum(node in owners for owners in facts.nodes_of.values()))
    if n_nodes >= _MANY_NODES:
        raise InputError(
            f"kube_pod_info puts all {len(pods.pods):,} pods on {node}, while {n_nodes:,} nodes are measured or have "
            "an address: the scrape of kube-state-metrics overwrites the label node, set honorLabels: true on it"
        )


def check_pods(pods: PodsOfDay, measured: Bools, unlisted: Collection[tuple[str, str]]) -> None:
    """Raise InputError if no pod that kube-state-metrics lists is measured, and others are.

    measured : (n_pods, n_ticks) in CPU or memory. unlisted : pods that are measured and not listed
    """
    if len(pods.pods) >= _MANY_PODS and unlisted and not measured.any():
        listed, others = (some([f"{namespace}/{pod}" for namespace, pod in sorted(p)]) for p in (pods.pods, unlisted))
        raise InputError(
            f"kube-state-metrics lists {len(pods.pods):,} pods ({listed}), and usage is of others ({others}): a scrape "
            "overwrites the labels namespace and pod, set honorLabels: true on those of kube-state-metrics and the "
            "kubelet"
        )


def unowned_pods(pods: PodsOfDay) -> list[Remark]:
    """A cluster in which no pod has an owner: the labels were lost, and every pod is a service of its own."""
    if len(pods.pods) < _MANY_PODS or any(life.service.kind not in ("Pod", "StaticPod") for life in pods.lives):
        return []
    return [
        Remark(
            "pods without owner",
            f"none of {len(pods.pods):,} pods has an owner, so that each is a service of its own: keep the labels "
            "created_by_kind and created_by_name of kube_pod_info",
        )
    ]


def unmatched_nodes(
    nodes: Sequence[str], node_usage: Floats32, with_pods: Collection[str], strangers: Sequence[str], facts: NodeFacts
) -> list[Remark]:
    """Nodes with pods and without usage, and names of node-exporter that are no nodes of Kubernetes.

    node_usage : (n_nodes, n_ticks, n_resources)
    Raises InputError where most nodes lack usage and as many names are not known: the two are the same machines.
    """
    measured: Bools = np.asarray(np.isfinite(node_usage[:, :, [CPU, MEMORY]]).any(axis=(1, 2)))
    lacking = [node for node, known in zip(nodes, measured.tolist(), strict=True) if node in with_pods and not known]
    if lacking and 2 * len(lacking) > len(with_pods) and 2 * len(strangers) >= len(lacking):
        raise InputError(
            f"node-exporter names {len(strangers):,} machines that Kubernetes does not know ({some(strangers)}), and "
            f"{len(lacking):,} of {len(with_pods):,} nodes with pods have no usage ({some(lacking)}): set the label "
            "node by relabelling the scrape of node-exporter, or prometheus.queries.node_*"
        )
    remarks = []
    if lacking and measured.any():
        remarks.append(
            Remark(
                "nodes without usage",
                f"{len(lacking):,} of {len(with_pods):,} nodes with pods have no usage: {some(lacking)}"
                f"{facts.platform(lacking)}; run node-exporter (windows_exporter) "
                "on them, until then their load is the sum of their pods",
            )
        )
    if strangers:
        remarks.append(
            Remark(
                "machines outside",
                f"node-exporter measures {len(strangers):,} machines that are no nodes of the cluster "
                f"({some(strangers)}): they are left out",
                wrong=False,
            )
        )
    return remarks


def uncounted_sidecars(n_containers: int) -> list[Remark]:
    """n_containers: init containers that run beside their pods, with unknown restart policy or requests."""
    if not n_containers:
        return []
    return [
        Remark(
            "sidecars",
            f"{n_containers:,} init containers run beside the others of their pods, and kube_pod_init_container_info "
            "has no label restart_policy, or kube_pod_init_container_resource_requests is not there: requests of "
            "sidecars are not counted, use kube-state-metrics 2.13 or newer and scrape both",
        )
    ]


# Whether queries answer in base units. Pure; only clear cases are refused.
#
#     found                                                        what it means
#     nodes use more than 3 x their capacity                       node_cpu in millicores or percent, node_memory too
# high
#     pods of a node use more than 5 x what the node uses          pod_* or node_* in another unit
#     half of the nodes have more than 2,000 cores                 node_capacity in millicores
#     half of the nodes use less than 16 MiB of memory             KiB or MiB; no node runs a kubelet in that
#     half of the pods use less than 64 KiB of memory              KiB or MiB; the smallest process needs more
#
# An idle cluster passes: nothing is said about low CPU. Medians over at least three nodes: one broken node is no unit.
# Disk and network are not compared: bytes between pods of one node never pass its interface, caches absorb reads.


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
