"""Small clusters made by hand: nodes, pods, selectors in a line each, and the view that filters and scores read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np

from cluster.tables.state import ClusterState
from cluster.tracking import TrackedCluster
from forecast.service_key import NO_OWNER, Owner
from kube.decoding.decoding import Kind
from kube.objects.constraints import (
    UNCONSTRAINED,
    LabelSelector,
    Operator,
    PodAffinityTerm,
    PodConstraints,
    Requirement,
)
from kube.objects.objects import NamespaceInfo, NodeInfo, PodInfo, QosClass, Taint
from placement.filters.filter import ClusterView, Filter
from placement.index.index import PlacementIndex
from placement.scores.node_score import NodeScore
from testing.objects import node_info, pod_info


def node_of(name: str, labels: Mapping[str, str] | None = None, taints: Sequence[Taint] = ()) -> NodeInfo:
    """A node that is ready."""
    return node_info(name, labels=labels or {}, taints=tuple(taints))


def pod_of(
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    node: str = "",
    namespace: str = "default",
    constraints: PodConstraints = UNCONSTRAINED,
    terminating: bool = False,
    owner: Owner = NO_OWNER,
    owner_uid: str = "",
) -> PodInfo:
    """A pod that runs, or waits where it has no node."""
    return pod_info(
        name,
        uid=f"{namespace}/{name}",
        namespace=namespace,
        node=node,
        labels=labels or {},
        owner=owner,
        owner_uid=owner_uid,
        qos=QosClass.BEST_EFFORT,
        terminating=terminating,
        constraints=constraints,
    )


def is_in(key: str, *values: str) -> Requirement:
    """key In (values)."""
    return Requirement(key, Operator.IN, values)


def chosen(*requirements: Requirement) -> LabelSelector:
    """A selector; of nothing, one that chooses everything."""
    return LabelSelector(requirements)


def term(
    key: str,
    *requirements: Requirement,
    namespaces: Iterable[str] = ("default",),
    namespace_selector: LabelSelector | None = None,
) -> PodAffinityTerm:
    """A term of pod affinity over a topology key."""
    return PodAffinityTerm(LabelSelector(requirements), key, frozenset(namespaces), namespace_selector)


def state_of(nodes: Iterable[NodeInfo], pods: Iterable[PodInfo]) -> ClusterState:
    """The tables with these objects."""
    state = ClusterState()
    for node in nodes:
        state.put_node(node)
    for pod in pods:
        state.put_pod(pod)
    return state


def view_of_state(state: ClusterState, namespaces: Mapping[str, Mapping[str, str]] | None = None) -> ClusterView:
    """The view of tables; labels by namespace. There is no forecast behind it."""
    index = PlacementIndex(state)
    index.replace(Kind.NAMESPACES, [NamespaceInfo(name, labels) for name, labels in (namespaces or {}).items()])
    return ClusterView(cluster=cast(TrackedCluster, None), index=index)


def view_of(
    nodes: Iterable[NodeInfo],
    pods: Iterable[PodInfo],
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
) -> ClusterView:
    """The view of a cluster of these objects."""
    return view_of_state(state_of(nodes, pods), namespaces)


def rejections(plugin: Filter, pod: PodInfo, view: ClusterView) -> dict[str, tuple[str, bool]]:
    """Reason, and whether preemption may help, by name of the node. No node is rejected for two reasons."""
    found: dict[str, tuple[str, bool]] = {}
    for rejection in plugin.filter(pod, view):
        assert rejection.nodes.shape == (view.n_rows,)
        for row in np.flatnonzero(rejection.nodes & view.state.alive).tolist():
            assert view.state.names[row] not in found
            found[view.state.names[row]] = (rejection.reason, rejection.preemptible)
    return found


def scores(plugin: NodeScore, pod: PodInfo, view: ClusterView, names: Sequence[str]) -> dict[str, int]:
    """Scores by name, normalised over these nodes."""
    rows = np.array([view.state.row_of[name] for name in names], dtype=np.int64)
    points = plugin.score(pod, view, rows)
    assert points.shape == (len(names),) and points.dtype == np.int64
    return dict(zip(names, points.tolist(), strict=True))
