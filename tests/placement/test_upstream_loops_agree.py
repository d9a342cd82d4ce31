"""Tables and two phases give what kube-scheduler's loops give, on random clusters of many pods."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import TypeVar

import numpy as np
import pytest

from cluster.tables.changes import Change
from kube.decoding.decoding import Kind, decode_object
from kube.objects.constraints import LabelSelector, Operator, Requirement
from kube.objects.counted_pods import sits
from kube.objects.kubernetes_version import COMPARED, NEWEST, KubernetesVersion
from kube.objects.objects import NamespaceInfo, NodeInfo, PodInfo
from placement.filters.filter import ClusterView
from placement.filters.inter_pod_affinity import InterPodAffinity
from placement.filters.node_affinity import matching_nodes
from placement.filters.pod_topology_spread import PodTopologySpread
from placement.filters.taint_toleration import tolerated
from placement.index.pods_by_labels import is_spread_by_default
from placement.scores.inter_pod_affinity import InterPodAffinityScore as InterPodAffinityScore
from placement.scores.pod_topology_spread import SYSTEM_DEFAULTS
from placement.scores.pod_topology_spread import PodTopologySpreadScore as PodTopologySpreadScore
from testing.servers.cluster_objects import Manifest
from tests.placement.random_cluster import random_cluster
from tests.placement.small_cluster import rejections, scores, view_of
from tests.placement.upstream_loops import LoopCluster

T = TypeVar("T", NodeInfo, PodInfo)

OWNER = "owner-uid"
SEEDS = [*range(60), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(60, 1000))]


def left_in(pod: PodInfo, view: ClusterView) -> Mapping[tuple[bool, bool], set[str]]:
    everywhere = view.state.alive
    affinity = matching_nodes(pod.constraints, view)
    taints = tolerated(pod.constraints.tolerations, view)
    return {
        (by_affinity, by_taints): {
            view.state.names[row]
            for row in np.flatnonzero(
                everywhere & (affinity if by_affinity else everywhere) & (taints if by_taints else everywhere)
            ).tolist()
        }
        for by_affinity in (True, False)
        for by_taints in (True, False)
    }


def spread_scores(
    nodes: Sequence[NodeInfo],
    pods: Sequence[PodInfo],
    probe: PodInfo,
    candidates: Sequence[NodeInfo],
    policies: Mapping[tuple[bool, bool], set[str]],
    version: KubernetesVersion = NEWEST,
) -> dict[str, int]:
    """By loops, with the constraints that kube-scheduler applies to pods without any."""
    soft = [one for one in probe.constraints.spread if not one.hard]
    if not probe.constraints.spread and is_spread_by_default(probe):
        # The owner as a label, chosen by the selector that its controller would have.
        pods = [
            replace(pod, labels={OWNER: pod.owner_uid}, namespace=probe.namespace)
            for pod in pods
            if is_spread_by_default(pod)
        ]
        selector = LabelSelector((Requirement(OWNER, Operator.IN, (probe.owner_uid,)),))
        soft = [replace(one, selector=selector) for one in SYSTEM_DEFAULTS]
    require_all = bool(probe.constraints.spread)
    return LoopCluster(nodes, pods, {}, version).pod_topology_spread_scores(
        probe, candidates, policies, require_all=require_all, soft=soft
    )


@dataclass(frozen=True)
class Decoded:
    nodes: list[NodeInfo]
    sitting: list[PodInfo]
    probes: list[PodInfo]
    namespaces: Mapping[str, Mapping[str, str]]


def cluster_of(seed: object) -> Decoded:
    cluster = random_cluster(Random(f"{seed}"), 8)
    sitting = [_decoded(Kind.PODS, one, PodInfo) for one in cluster.sitting]
    return Decoded(
        [_decoded(Kind.NODES, one, NodeInfo) for one in cluster.nodes],
        [replace(pod, terminating=pod.name in cluster.terminating) for pod in sitting if sits(pod)],
        [_decoded(Kind.PODS, one, PodInfo) for one in cluster.probes],
        cluster.namespaces,
    )


def follow(view: ClusterView, made: Decoded, rng: Random) -> None:
    """The tables get there one object after the other, whatever they knew before."""
    state, nodes, pods = view.state, {one.name for one in made.nodes}, {one.uid for one in made.sitting}
    steps: list[Callable[[], Sequence[Change]]] = [
        *(partial(state.put_node, one) for one in made.nodes),
        *(partial(state.put_pod, one) for one in made.sitting),
        *(partial(state.delete_node, name) for name in list(state.row_of) if name not in nodes),
        *(partial(state.delete_pod, uid) for uid in list(state.pods) if uid not in pods),
    ]
    rng.shuffle(steps)
    for step in steps:
        view.index.apply(step())
    view.index.replace(Kind.NAMESPACES, [NamespaceInfo(name, labels) for name, labels in made.namespaces.items()])


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_that_have_followed_other_clusters_give_what_the_loops_give(seed: int) -> None:
    rng, view = Random(seed), view_of([], [])
    for made in (cluster_of(f"before {seed}"), cluster_of(seed)):
        follow(view, made, rng)
        view.state.version = COMPARED[seed % len(COMPARED)]
        loops = LoopCluster(made.nodes, made.sitting, made.namespaces, view.state.version)
        names = [node.name for node in made.nodes]
        for probe in made.probes:
            policies = left_in(probe, view)
            assert rejections(InterPodAffinity(), probe, view) == loops.inter_pod_affinity(probe)
            assert rejections(PodTopologySpread(), probe, view) == loops.pod_topology_spread(probe, policies)
            found = scores(InterPodAffinityScore(), probe, view, names)
            assert found == loops.inter_pod_affinity_scores(probe, made.nodes)
            found = scores(PodTopologySpreadScore(), probe, view, names)
            assert found == spread_scores(made.nodes, made.sitting, probe, made.nodes, policies, loops.version)
    follow(view, Decoded([], [], [], {}), rng)
    index = view.index
    left = (index.groups, index.groups.owned, index.terms.anti_affinity, index.terms.preferences)
    assert not any(len(one) for one in left)


def _decoded(kind: Kind, manifest: Manifest, made: type[T]) -> T:
    found, _ = decode_object(kind, json.dumps(manifest).encode())
    assert isinstance(found, made)
    return found
