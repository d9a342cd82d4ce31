"""Clusters of pods that keep near to or away from each other, for benchmarks of pod affinity and spread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import numpy as np

from cluster.tables.state import ClusterState
from cluster.tracking import TrackedCluster
from forecast.service_key import Owner
from kube.objects.constraints import (
    UNCONSTRAINED,
    LabelSelector,
    Operator,
    PodAffinityTerm,
    PodConstraints,
    PreferredPodTerm,
    Requirement,
    TopologySpreadConstraint,
)
from kube.objects.objects import NodeInfo, PodInfo
from placement.filters.filter import ClusterView
from placement.index.index import PlacementIndex
from testing.objects import node_info, pod_info

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NAMESPACE = "shop"


def node(i: int) -> NodeInfo:
    """One of a fleet in three zones."""
    name = f"node-{i}"
    return node_info(name, labels={HOSTNAME: name, ZONE: f"zone-{i % 3}"})


def pod(name: str, service: str, on: str = "", constraints: PodConstraints = UNCONSTRAINED, **labels: str) -> PodInfo:
    """A pod of a service, bound to a node or not yet; further labels."""
    return pod_info(
        name,
        node=on,
        labels={"app": service, "tier": "server", "pod-template-hash": f"hash-of-{service}", **labels},
        owner=Owner("ReplicaSet", service),
        owner_uid=service,
        constraints=constraints,
    )


def choosing(key: str, service: str) -> PodAffinityTerm:
    """A term that means the pods of a service, over a topology key."""
    return PodAffinityTerm(LabelSelector((Requirement("app", Operator.IN, (service,)),)), key, frozenset({NAMESPACE}))


def web_constraints(service: str, *, near: str, away_from: str) -> PodConstraints:
    """In a zone with a cache, not on a node with a batch job, rather not beside one's own, evenly over the zones."""
    own = LabelSelector((Requirement("app", Operator.IN, (service,)),))
    return PodConstraints(
        affinity=(choosing(ZONE, near),),
        anti_affinity=(choosing(HOSTNAME, away_from),),
        preferred_affinity=(PreferredPodTerm(20, choosing(HOSTNAME, near)),),
        preferred_anti_affinity=(PreferredPodTerm(50, choosing(HOSTNAME, service)),),
        spread=(
            TopologySpreadConstraint(1, ZONE, hard=True, selector=own),
            TopologySpreadConstraint(1, HOSTNAME, hard=False, selector=own),
        ),
    )


def service_pods(
    n_services: int, replicas: int, n_nodes: int, n_apart: int, rng: np.random.Generator
) -> Iterator[PodInfo]:
    """Pods of services on random nodes; the first `n_apart` services keep away from their own kind by hostname."""
    for i in range(n_services):
        service = f"service-{i}"
        apart = PodConstraints(anti_affinity=(choosing(HOSTNAME, service),)) if i < n_apart else UNCONSTRAINED
        for replica, place in enumerate(rng.choice(n_nodes, replicas, replace=replicas > n_nodes).tolist()):
            yield pod(f"{service}-{replica}", service, f"node-{place}", apart)


def view_of(n_nodes: int, pods: Iterable[PodInfo]) -> ClusterView:
    """The view of a cluster of these; there is no forecast behind it."""
    state = ClusterState()
    for i in range(n_nodes):
        state.put_node(node(i))
    for one in pods:
        state.put_pod(one)
    return ClusterView(cluster=cast(TrackedCluster, None), index=PlacementIndex(state))
