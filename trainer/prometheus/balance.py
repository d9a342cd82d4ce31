"""Whether the figures of a day can be true together: pods against nodes, requests against nodes. Pure.

Units that cannot be true at all are refused (trainer.prometheus.units); what is merely very unlikely is remarked on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from forecast.resources import CPU, MEMORY, NETWORK, RESOURCES
from trainer.prometheus.pods_of_day import PodsOfDay
from trainer.prometheus.remark import Remark, some

_LEAST_SHARE = 0.01
"""Pods of a k3s server without work use 3 % of what the node uses; those of whole clusters never so little."""
_MOST_CORES = 1.25
"""Cores of pods for each core of their nodes, over a day: what pods use is a part of it. Not so of memory: active pages
of files count as used by a pod, and as available on its node."""

_MANY_PODS = 10
_MOST_REQUESTED = 1.5
_MOST_OF_ONE_NODE = 5.0
_LEAST_MEMORY_REQUEST = 2.0**20


def pods_against_nodes(pod_sums: AnyFloats, node_usage: AnyFloats, n_pods: int) -> Iterator[Remark]:
    """What pods use that is far less than what their nodes use, and CPU that is more.

    pod_sums   : (n_nodes, n_ticks, n_resources) the sum over each node's pods, NaN = none is measured
    node_usage : (n_nodes, n_ticks, n_resources)
    """
    if n_pods < _MANY_PODS:
        return
    both: Bools = np.isfinite(pod_sums) & np.isfinite(node_usage)
    ours = np.where(both, pod_sums, 0.0).sum(axis=(0, 1), dtype=np.float64)
    theirs = np.where(both, node_usage, 0.0).sum(axis=(0, 1), dtype=np.float64)
    for resource in (CPU, MEMORY, NETWORK):
        name = RESOURCES[resource].name
        least = 0.0 if resource == NETWORK else _LEAST_SHARE  # bytes between pods need not pass the node's interface
        if theirs[resource] <= 0.0 < ours[resource]:
            yield Remark(
                f"idle nodes: {name}",
                f"query node_{name} says 0 of every node while pods use some: is it a gauge where a counter is meant? "
                f"Correct prometheus.queries.node_{name}",
            )
        elif theirs[resource] > 0.0 and ours[resource] <= least * theirs[resource]:
            yield Remark(
                f"idle pods: {name}",
                f"all pods together use {ours[resource] / theirs[resource]:.2%} of what nodes use ({name}): query "
                f"pod_{name} seems to answer in another unit, or with a gauge where a counter is meant; correct "
                f"prometheus.queries.pod_{name}",
            )
    if theirs[CPU] > 0.0 and ours[CPU] > _MOST_CORES * theirs[CPU]:
        yield Remark(
            "busy pods: cpu",
            f"all pods together use {ours[CPU] / theirs[CPU]:.1f} times the cores that their nodes use: pods are "
            "counted twice (a second cAdvisor that names containers otherwise?), or nodes in part; compare container_* "
            "and node_* on one node, correct prometheus.queries.pod_cpu or node_cpu",
        )


def nodes_below_their_pods(nodes: tuple[str, ...], pod_sums: AnyFloats, node_usage: AnyFloats) -> Iterator[Remark]:
    """Single nodes whose pods use a multiple of what is said of the node; arguments as above.

    All of them together are refused (trainer.prometheus.units).
    """
    both: Bools = np.isfinite(pod_sums) & np.isfinite(node_usage)
    ours = np.where(both, pod_sums, 0.0).sum(axis=1, dtype=np.float64)
    theirs = np.where(both, node_usage, 0.0).sum(axis=1, dtype=np.float64)  # (n_nodes, n_resources)
    for resource in (CPU, MEMORY):
        below = np.flatnonzero(ours[:, resource] > _MOST_OF_ONE_NODE * np.maximum(theirs[:, resource], 0.0))
        known = [nodes[row] for row in below.tolist() if both[row, :, resource].any()]
        if known and len(known) < len(nodes):
            name = RESOURCES[resource].name
            yield Remark(
                f"nodes below their pods: {name}",
                f"on {len(known):,} of {len(nodes):,} nodes ({some(known)}) pods use more than {_MOST_OF_ONE_NODE:g} "
                f"times what node_{name} says of them: is it in another unit there, or another kind of exporter? "
                f"Correct the scrape of these nodes, or prometheus.queries.node_{name}",
            )


def requests_beyond_nodes(pods: PodsOfDay, asked: Floats, bounded: Floats) -> list[Remark]:
    """Single pods that request more than their node can give; they count as requesting that.

    asked, bounded : (n_pods, 2) as stated, and as far as a node can serve them; NaN = unknown
    """
    beyond = np.flatnonzero((asked > bounded).any(axis=1)).tolist()
    if not beyond:
        return []
    last = [pods.lives[i] for i in pods.last_life()]
    return [
        Remark(
            "requests beyond nodes",
            f"{len(beyond):,} pods request more than their node can give "
            f"({some([f'{last[i].namespace}/{last[i].pod}' for i in beyond])}): they count as requesting that, correct "
            "their requests",
        )
    ]


def requests_against_nodes(pods: PodsOfDay, requests: Floats, limits: Floats, nodes: tuple[str, ...]) -> list[Remark]:
    """Requests that no scheduler would have let in, that no program could run with, or that are not there at all.

    requests : (n_pods, 2) CPU and memory, NaN = unknown
    limits   : (n_nodes, 2) what pods may request of each node
    """
    if len(pods.pods) < _MANY_PODS:
        return []
    if not np.isfinite(requests).any():
        return [
            Remark(
                "no requests",
                f"none of {len(pods.pods):,} pods has requests: is kube_pod_container_resource_requests scraped with "
                "its label resource? Without them nothing can be said about requests",
            )
        ]
    there = pods.life[:, -1] >= 0
    row = {node: number for number, node in enumerate(nodes)}
    node = np.array([row[life.node] for life in pods.lives], dtype=np.int64)[pods.life[there, -1]]
    sums = np.zeros((len(nodes), 2))
    np.add.at(sums, node, np.nan_to_num(requests[there]))
    remarks = []
    for resource, unit in ((CPU, "cores"), (MEMORY, "bytes")):
        share = sums[:, resource] / limits[:, resource]
        known = share[np.isfinite(share)]
        if known.size and np.median(known) > _MOST_REQUESTED:
            remarks.append(
                Remark(
                    f"large requests: {RESOURCES[resource].name}",
                    f"requests for {RESOURCES[resource].name} add up to {np.median(known):,.1f} times what a node can "
                    f"give: they must be in {unit}, correct prometheus.queries.pod_requests",
                )
            )
    asked = requests[requests[:, MEMORY] > 0, MEMORY]
    if asked.size >= _MANY_PODS and np.median(asked) < _LEAST_MEMORY_REQUEST:
        remarks.append(
            Remark(
                "small requests: memory",
                f"half of the requests for memory are below {np.median(asked):,.0f} bytes: they must be in bytes, "
                "correct prometheus.queries.pod_requests",
            )
        )
    return remarks
