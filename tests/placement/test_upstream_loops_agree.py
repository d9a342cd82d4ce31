"""Tables and two phases give what kube-scheduler's loops give, on small random clusters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.decoding.decoding import Kind, decode_object
from kube.objects.constraints import LabelSelector, Operator, Requirement
from kube.objects.kubernetes_version import COMPARED
from kube.objects.objects import NodeInfo, PodInfo
from kube.objects.pod_accounting import sits
from placement.filters.filter import ClusterView
from placement.filters.inter_pod_affinity import InterPodAffinity
from placement.filters.node_affinity import matching_nodes
from placement.filters.pod_topology_spread import PodTopologySpread
from placement.filters.taint_toleration import tolerated
from placement.index.owned_pods import is_spread_by_default
from placement.scores.inter_pod_affinity import InterPodAffinity as InterPodAffinityScore
from placement.scores.pod_topology_spread import PodTopologySpread as PodTopologySpreadScore
from placement.scores.soft_spread import SYSTEM_DEFAULTS
from testing.servers.cluster_objects import Manifest
from tests.placement.random_cluster import random_cluster
from tests.placement.random_neighbours import Neighbourhood, neighbourhoods
from tests.placement.small_cluster import rejections, scores, view_of
from tests.placement.upstream_loops import LoopCluster

T = TypeVar("T", NodeInfo, PodInfo)

OWNER = "owner-uid"
SEEDS = [*range(60), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(60, 2000))]


def both(hood: Neighbourhood) -> tuple[LoopCluster, ClusterView]:
    return LoopCluster(hood.nodes, hood.pods, hood.namespaces), view_of(hood.nodes, hood.pods, hood.namespaces)


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


@settings(max_examples=60, deadline=None)
@given(st.one_of(neighbourhoods(), neighbourhoods("affinity"), neighbourhoods("anti_affinity")))
def test_inter_pod_affinity_rejects_the_same_nodes_for_the_same_reasons(hood: Neighbourhood) -> None:
    loops, view = both(hood)
    assert rejections(InterPodAffinity(), hood.probe, view) == loops.inter_pod_affinity(hood.probe)


@settings(max_examples=60, deadline=None)
@given(neighbourhoods())
def test_inter_pod_affinity_scores_are_the_same(hood: Neighbourhood) -> None:
    loops, view = both(hood)
    candidates = hood.nodes[: 1 + len(hood.nodes) // 2]
    found = scores(InterPodAffinityScore(), hood.probe, view, [node.name for node in candidates])
    assert found == loops.inter_pod_affinity_scores(hood.probe, candidates)


@settings(max_examples=60, deadline=None)
@given(st.one_of(neighbourhoods(), neighbourhoods("spread"), neighbourhoods("spread")))
def test_pod_topology_spread_rejects_the_same_nodes_for_the_same_reasons(hood: Neighbourhood) -> None:
    loops, view = both(hood)
    expected = loops.pod_topology_spread(hood.probe, left_in(hood.probe, view))
    assert rejections(PodTopologySpread(), hood.probe, view) == expected


@settings(max_examples=60, deadline=None)
@given(st.one_of(neighbourhoods(), neighbourhoods("spread"), neighbourhoods("spread")))
def test_pod_topology_spread_scores_are_the_same(hood: Neighbourhood) -> None:
    view = view_of(hood.nodes, hood.pods, hood.namespaces)
    candidates = hood.nodes[: 1 + len(hood.nodes) // 2]
    expected = spread_scores(hood.nodes, hood.pods, hood.probe, candidates, left_in(hood.probe, view))
    assert scores(PodTopologySpreadScore(), hood.probe, view, [node.name for node in candidates]) == expected


def spread_scores(
    nodes: Sequence[NodeInfo],
    pods: Sequence[PodInfo],
    probe: PodInfo,
    candidates: Sequence[NodeInfo],
    policies: Mapping[tuple[bool, bool], set[str]],
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
    return LoopCluster(nodes, pods, {}).pod_topology_spread_scores(
        probe, candidates, policies, require_all=require_all, soft=soft
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_clusters_of_many_pods_agree(seed: int) -> None:
    cluster = random_cluster(Random(seed), 8)
    nodes = [_decoded(Kind.NODES, one, NodeInfo) for one in cluster.nodes]
    sitting = [_decoded(Kind.PODS, one, PodInfo) for one in cluster.sitting]
    sitting = [replace(pod, terminating=pod.name in cluster.terminating) for pod in sitting if sits(pod)]
    view = view_of(nodes, sitting, cluster.namespaces)
    view.state.version = COMPARED[seed % len(COMPARED)]
    loops = LoopCluster(nodes, sitting, cluster.namespaces, view.state.version)
    names = [node.name for node in nodes]
    for one in cluster.probes:
        probe = _decoded(Kind.PODS, one, PodInfo)
        policies = left_in(probe, view)
        assert rejections(InterPodAffinity(), probe, view) == loops.inter_pod_affinity(probe)
        assert rejections(PodTopologySpread(), probe, view) == loops.pod_topology_spread(probe, policies)
        assert scores(InterPodAffinityScore(), probe, view, names) == loops.inter_pod_affinity_scores(probe, nodes)
        found = scores(PodTopologySpreadScore(), probe, view, names)
        assert found == spread_scores(nodes, sitting, probe, nodes, policies)


def _decoded(kind: Kind, manifest: Manifest, made: type[T]) -> T:
    found, _ = decode_object(kind, json.dumps(manifest).encode())
    assert isinstance(found, made)
    return found
