"""A cluster as filters and scores see it, made of a few nodes and pods, and what a filter says of each node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cluster.tracking import TrackedCluster
from kube.decoding.decoding import decode_pod
from kube.objects.objects import NodeImage, NodeInfo, PodInfo, Taint
from placement.filters.filter import ClusterView, Filter
from placement.index.index import PlacementIndex
from placement.scores.node_score import NodeScore
from scorer.options import ScorerOptions
from testing.objects import node_info


@dataclass(frozen=True)
class Verdict:
    """What a filter says of one node: nothing, or why not, and whether evicting pods may help."""

    reasons: frozenset[str] = frozenset()
    preemptible: bool = True

    @classmethod
    def no(cls, *reasons: str, preemptible: bool = False) -> Verdict:
        return cls(frozenset(reasons), preemptible)


PASSES = Verdict()


def node_named(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Taint] = (),
    unschedulable: bool = False,
    images: Sequence[NodeImage] = (),
    allocatable: Mapping[str, float] | None = None,
) -> NodeInfo:
    amounts = {"cpu": 4.0, "memory": 2.0**34, "pods": 110.0} if allocatable is None else dict(allocatable)
    return node_info(
        name,
        labels=labels or {},
        taints=tuple(taints),
        unschedulable=unschedulable,
        allocatable=amounts,
        images=tuple(images),
    )


def pod_with(spec: Mapping[str, Any] | None = None, *, name: str = "p", node: str = "", **metadata: Any) -> PodInfo:
    """A pod from the spec of its manifest."""
    whole = {"containers": [{"name": "main", "image": ""}], **(spec or {}), **({"nodeName": node} if node else {})}
    return decode_pod({"metadata": {"name": name, "namespace": "shop", "uid": name, **metadata}, "spec": whole})


def view_of(nodes: Sequence[NodeInfo], pods: Sequence[PodInfo] = ()) -> ClusterView:
    cluster = TrackedCluster(ScorerOptions(), now=0.0)
    for node in nodes:
        cluster.apply(cluster.state.put_node(node))
    for pod in pods:
        cluster.apply(cluster.state.put_pod(pod))
    return ClusterView(cluster, PlacementIndex(cluster.state))


def verdicts(tested: Filter, pod: PodInfo, view: ClusterView) -> dict[str, Verdict]:
    """By node name, of nodes that are there."""
    rejections = tested.filter(pod, view)
    found = {}
    for name, row in view.state.row_of.items():
        if view.state.nodes[row] is not None:
            of_node = [one for one in rejections if one.nodes[row]]
            found[name] = Verdict(frozenset(one.reason for one in of_node), all(one.preemptible for one in of_node))
    for rejection in rejections:
        assert rejection.nodes.shape == (view.n_rows,) and rejection.nodes.dtype == np.bool_
        assert (rejection.nodes & view.state.alive).any(), "a rejection of no node is none"
    return found


def verdict(tested: Filter, pod: PodInfo, node: NodeInfo, pods: Sequence[PodInfo] = ()) -> Verdict:
    """Of the only node there is."""
    return verdicts(tested, pod, view_of([node], pods))[node.name]


def passing(tested: Filter, pod: PodInfo, view: ClusterView) -> set[str]:
    return {name for name, verdict in verdicts(tested, pod, view).items() if verdict == PASSES}


def scores(tested: NodeScore, pod: PodInfo, view: ClusterView) -> dict[str, int]:
    """By node name, over all nodes that are there."""
    rows = np.flatnonzero(view.state.alive)
    values = tested.score(pod, view, rows)
    assert values.dtype == np.int64 and values.shape == rows.shape
    return {view.state.names[row]: int(value) for row, value in zip(rows, values, strict=True)}
