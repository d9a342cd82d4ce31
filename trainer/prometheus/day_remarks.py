"""What to know of a day that was read: what runs and is not measured, and which figures cannot be true together.
Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from forecast.resources import CPU, LOG, MEMORY, NETWORK, RESOURCES
from trainer.prometheus.day_tables import Presence, Remark, some
from trainer.prometheus.node_names import NodeFacts
from trainer.prometheus.pods_of_day import PodsOfDay

_FEW_PODS = 0.005
"""Share of the running pods that may be unmeasured without a word: those that have just begun, or are about to end."""

_SOME_PODS = 0.02
"""Share that may lack one resource: of a pod that cannot start there is a cgroup and nothing else."""

_LEAST_TICKS = 3
_MOST_OF_THE_TIME, _LASTING_TICKS = 0.8, 12

_QUIET_PODS = 3
"""So many pods of a node of which none logs anything have no collector."""

_LEAST_SHARE = 0.01
"""Pods of a k3s server without work use 3 % of what the node uses; those of whole clusters never so little."""

_MOST_CORES = 1.25
"""Cores of pods for each core of their nodes, over a day: what pods use is a part of it. Not so of memory: active pages
of files count as used by a pod, and as available on its node."""

_MANY_PODS = 10
_MOST_REQUESTED = 1.5
_MOST_OF_ONE_NODE = 5.0
_LEAST_MEMORY_REQUEST = 2.0**20


def unmeasured_pods(pods: PodsOfDay, rows: Presence, usage: Floats32, facts: NodeFacts) -> list[Remark]:
    """Pods that ran and were not measured, or not in one resource, by where they ran and what their nodes run on.

    usage : (n_pods, n_ticks, n_resources)
    """
    if not len(pods.pods):
        return []
    ticks = np.bincount(rows.pod, minlength=len(pods.pods))
    ran: Bools = ticks >= _LEAST_TICKS
    last = pods.last_life()
    on_host = np.array([pods.lives[life].host_network for life in last], dtype=bool)
    known: Bools = np.asarray(np.isfinite(usage).any(axis=1))  # (n_pods, n_resources)
    unknown = ran & ~known[:, [CPU, MEMORY]].any(axis=1)
    remarks = []
    if _many(unknown, ran):
        remarks.append(
            Remark(
                "unmeasured pods",
                f"{_these(unknown, ran, 'were', pods, last, facts)}: neither their containers nor their own cgroups "
                "have series, look at what the kubelets there expose (/metrics/cadvisor, /metrics/resource) and what "
                "the scrape drops. They are forecast from their nodes and their requests",
            )
        )
    for resource in range(LOG):
        here = ran & ~unknown & (~on_host if resource == NETWORK else True)
        lacking = here & ~known[:, resource]
        if known[here, resource].any() and lacking.sum() > max(1, _SOME_PODS * here.sum()):
            remarks.append(
                Remark(
                    f"pods without {RESOURCES[resource].name}",
                    f"{_these(lacking, here, f'{RESOURCES[resource].name} was', pods, last, facts)}: look at what the "
                    "kubelets there expose (/metrics/cadvisor) and what the scrape drops",
                )
            )
    lasting = ticks >= min(_LASTING_TICKS, usage.shape[1])  # at its beginning every pod has a hole
    asked = (known & lasting[:, None])[rows.pod][:, [CPU, MEMORY]]  # (n_rows, 2)
    there = np.isfinite(usage[rows.pod, rows.tick][:, [CPU, MEMORY]])
    for column, name in enumerate(("cpu", "memory")):
        if asked[:, column].any() and (share := there[asked[:, column], column].mean()) < _MOST_OF_THE_TIME:
            remarks.append(
                Remark(
                    f"gaps of pods: {name}",
                    f"{name} of running pods is measured in {share:.0%} of the time only: is the kubelet's cAdvisor "
                    "scraped without gaps, and is prometheus.step at least two scrape intervals?",
                )
            )
    return remarks + _without_collector(pods, last, ran, known[:, LOG], facts)


def unknown_of_nodes(
    nodes: Sequence[str], node_usage: Floats32, capacity: Floats, allocatable: Floats, with_pods: Collection[str]
) -> Iterator[Remark]:
    """Nodes that are measured, though not in every resource that others have, and nodes of unknown size.

    node_usage : (n_nodes, n_ticks, n_resources). capacity : (n_nodes, n_resources). allocatable : (n_nodes, 2)
    """
    here = np.array([node in with_pods for node in nodes], dtype=bool)
    if not here.any():
        return
    known: Bools = np.asarray(np.isfinite(node_usage).any(axis=1))
    measured = here & known[:, [CPU, MEMORY]].any(axis=1)
    for resource in range(LOG):
        lacking = measured & ~known[:, resource]
        if lacking.any() and (measured & known[:, resource]).any():
            name = RESOURCES[resource].name
            yield Remark(
                f"nodes without {name}",
                f"{name} of {_nodes(lacking, measured, nodes)} is not measured: look at what node-exporter exposes "
                f"there, and at prometheus.queries.node_{name}",
            )
    sized: Bools = np.asarray(np.isfinite(capacity[:, [CPU, MEMORY]]).all(axis=1))
    if (here & sized).any() and (here & ~sized).any():
        yield Remark(
            "nodes without capacity",
            f"the capacity of {_nodes(here & ~sized, here, nodes)} is unknown: kube_node_status_capacity lacks them, "
            "look at what kube-state-metrics exposes and what its scrape drops",
        )
    unsaid = here & sized & ~np.isfinite(allocatable).all(axis=1)
    if unsaid.any():
        yield Remark(
            "nodes without allocatable",
            f"what pods may request of {_nodes(unsaid, here, nodes)} is unknown, since kube_node_status_allocatable "
            "lacks them: their whole capacity is taken for it",
        )


def _without_collector(pods: PodsOfDay, last: Ints, ran: Bools, logs: Bools, facts: NodeFacts) -> list[Remark]:
    """Nodes of whose pods none logs anything, while pods of other nodes do."""
    nodes = [pods.lives[life].node for life in last]
    heard = {nodes[pod] for pod in np.flatnonzero(ran & logs).tolist()}
    quiet = Counter(nodes[pod] for pod in np.flatnonzero(ran & ~logs).tolist() if nodes[pod] not in heard)
    silent = sorted(node for node, n_pods in quiet.items() if n_pods >= _QUIET_PODS)
    if not heard or not silent:
        return []
    return [
        Remark(
            "nodes without logs",
            f"no log bytes of any pod on {len(silent):,} of {len(heard | set(quiet)):,} nodes are counted, while those "
            f"of others are: run the log collector on {some(silent)}, or scrape it there",
        )
    ]


def _many(lacking: Bools, of: Bools) -> bool:
    return bool(lacking.any() and lacking.sum() > _FEW_PODS * of.sum())


def _these(lacking: Bools, of: Bools, what: str, pods: PodsOfDay, last: Ints, facts: NodeFacts) -> str:
    """Say how many pods, where, on what platform, and of which services most of them are."""
    lives = [pods.lives[last[pod]] for pod in np.flatnonzero(lacking).tolist()]
    nodes = Counter(life.node for life in lives)
    services = Counter(f"{life.namespace}/{life.service.service}" for life in lives)
    subject = "running pods were" if what == "were" else f"running pods: their {what}"
    return (
        f"{lacking.sum():,} of {of.sum():,} {subject} never measured, on {some(nodes)}{facts.platform(nodes)}; most of "
        f"them of {some(services)}"
    )


def _nodes(these: Bools, of: Bools, nodes: Sequence[str]) -> str:
    names = [node for node, here in zip(nodes, these.tolist(), strict=True) if here]
    return f"{len(names):,} of {of.sum():,} nodes ({some(names)})"


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

    All of them together are refused (trainer.prometheus.day_consistency).
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
