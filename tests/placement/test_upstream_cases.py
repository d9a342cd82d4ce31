"""kube-scheduler's own tables for InterPodAffinity and PodTopologySpread (upstream_cases.json says where from)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kube.decoding.decoding import Kind, decode_object
from kube.objects.objects import NodeInfo, PodInfo
from placement.filters.filter import ClusterView
from placement.filters.inter_pod_affinity import InterPodAffinity
from placement.filters.pod_topology_spread import PodTopologySpread
from placement.scores.inter_pod_affinity import InterPodAffinityScore as InterPodAffinityScore
from placement.scores.pod_topology_spread import PodTopologySpreadScore as PodTopologySpreadScore
from tests.placement.small_cluster import rejections, scores, view_of

Case = Mapping[str, Any]

CASES: list[Case] = json.loads((Path(__file__).parent / "upstream_cases.json").read_text())["cases"]
ABOUT_AFFINITY = {
    "TestRequiredAffinitySingleNode",
    "TestRequiredAffinityMultipleNodes",
    "TestPreferredAffinity",
    "TestPreferredAffinityWithHardPodAffinitySymmetricWeight",
}


def called(cases: list[Case]) -> list[Any]:
    return [pytest.param(case, id=f"{case['test']}: {case['name']}") for case in cases]


def having(what: str, *, affinity: bool) -> list[Any]:
    return called([case for case in CASES if what in case and (case["test"] in ABOUT_AFFINITY) is affinity])


def probe_and_view(case: Case) -> tuple[PodInfo, ClusterView]:
    pods, nodes = [_pod(one) for one in case["pods"]], []
    for one in case["nodes"]:
        node, _ = decode_object(Kind.NODES, json.dumps(one).encode())
        assert isinstance(node, NodeInfo)
        nodes.append(node)
    return _pod(case["pod"]), view_of(nodes, pods, case.get("namespaces"))


def _pod(manifest: Mapping[str, Any]) -> PodInfo:
    pod, _ = decode_object(Kind.PODS, json.dumps(manifest).encode())
    assert isinstance(pod, PodInfo)
    return pod


@pytest.mark.parametrize("case", having("rejected", affinity=True))
def test_inter_pod_affinity_rejects(case: Case) -> None:
    probe, view = probe_and_view(case)
    expected = {name: (reason, preemptible) for name, (reason, preemptible) in case["rejected"].items()}
    assert rejections(InterPodAffinity(), probe, view) == expected


@pytest.mark.parametrize("case", having("scores", affinity=True))
def test_inter_pod_affinity_scores(case: Case) -> None:
    probe, view = probe_and_view(case)
    assert scores(InterPodAffinityScore(), probe, view, list(case["scores"])) == case["scores"]


@pytest.mark.parametrize("case", having("rejected", affinity=False))
def test_pod_topology_spread_rejects(case: Case) -> None:
    probe, view = probe_and_view(case)
    found = {
        name: "Unschedulable" if preemptible else "UnschedulableAndUnresolvable"
        for name, (_, preemptible) in rejections(PodTopologySpread(), probe, view).items()
    }
    assert found == case["rejected"]


@pytest.mark.parametrize("case", having("scores", affinity=False))
def test_pod_topology_spread_scores(case: Case) -> None:
    probe, view = probe_and_view(case)
    assert scores(PodTopologySpreadScore(), probe, view, list(case["scores"])) == case["scores"]
