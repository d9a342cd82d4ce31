"""Which nodes pods could use, by the filters, whatever sits there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from cluster.tracking import TrackedCluster
from kube.decoding.decoding import Kind, decode_object, decode_pod
from kube.objects.objects import NodeInfo, PodInfo, Taint
from placement.card_types.listed_cards import ListedCards
from placement.feasibility import verdict
from placement.filters.catalogue import standard_filters
from placement.filters.domain import DOMAIN_LABEL, Domain
from placement.filters.filter import ClusterView
from placement.filters.pod_annotations import GPU_TYPE, MACHINE_GROUP
from placement.index.index import PlacementIndex
from placement.machine_groups.machine_group import MachineGroup
from placement.node_rule_settings import CardOptions, Protection
from placement.policies.policy import OnePolicyForAll, Policy
from placement.usable_nodes import PlacingScheduler, UsableNodesByFilters
from placement.virtual_node_settings import ServerlessOptions
from placement.virtual_node_table import Claims, VirtualNodes
from scorer.options import ScorerOptions
from scorer.scoring_policy import scoring_policy
from testing.placement.views import node_named, pod_with
from tests.placement.random_cluster import random_cluster

GPU = "nvidia.com/gpu"
GPUS = {"cpu": 4.0, "memory": 2.0**34, "pods": 110.0, GPU: 8.0}
SCORING = scoring_policy(ScorerOptions())
HARD = ListedCards(CardOptions(without_cards=Protection.HARD))
SOFT = ListedCards()


def placer(name: str, scheduler_name: str, domain: str, cards: ListedCards, *, names_cards: bool) -> PlacingScheduler:
    filters = (Domain(domain), MachineGroup(), *((cards,) if names_cards else ()))
    return PlacingScheduler(name, scheduler_name, OnePolicyForAll(Policy(SCORING, filters, cards)))


class LiveCluster:
    """A cluster with kube-scheduler on nodes without a domain, and a loop of ours on those of domain `ours`."""

    def __init__(
        self,
        nodes: Sequence[NodeInfo],
        pods: Sequence[PodInfo] = (),
        *,
        cards: ListedCards = HARD,
        names_cards: bool = True,
    ) -> None:
        """names_cards: whether the policy names the filter CardTypes."""
        self.cluster = TrackedCluster(ScorerOptions(), now=0.0)
        virtual = VirtualNodes(self.cluster.state, Claims(ServerlessOptions()))
        names = (("kube-scheduler", "", ""), ("online", "ours", "ours"))
        placers = [placer(*one, cards, names_cards=names_cards) for one in names]
        self.usable = UsableNodesByFilters(self.cluster, placers, virtual)
        self.cluster.listeners.append(self.usable.apply)
        for node in nodes:
            self.put(node)
        for pod in pods:
            self.cluster.apply(self.cluster.state.put_pod(pod))

    def put(self, node: NodeInfo) -> None:
        self.cluster.apply(self.cluster.state.put_node(node))

    def named(self, mask: np.ndarray) -> str:
        """As in "a b": nodes by name."""
        names = self.cluster.state.names
        return " ".join(sorted(names[row] for row in np.flatnonzero(mask).tolist()))

    def by(self, pod: PodInfo) -> str:
        masks, (mask_of,) = self.usable.usable_by([pod])
        return self.named(masks[mask_of])

    def pool(self, pod: PodInfo) -> str:
        return self.named(self.usable.pools()[self.usable.pool_of(pod)])


def virtual_node(name: str) -> NodeInfo:
    taints = [Taint("virtual-kubelet.io/provider", "cloud", "NoSchedule")]
    return node_named(name, labels={"type": "virtual-kubelet"}, taints=taints, allocatable={"cpu": 10_000.0})


CLUSTER = (
    node_named("plain"),
    node_named("ssd", labels={"disk": "ssd"}),
    node_named("tainted", taints=[Taint("dedicated", "db", "NoSchedule")]),
    node_named("cordoned", unschedulable=True),
    replace(node_named("down"), ready=False),
    node_named("gpu", allocatable=GPUS, labels={"nvidia.com/gpu.product": "NVIDIA-H100"}),
    node_named("group", labels={MACHINE_GROUP: "batch"}),
    node_named("loop", labels={DOMAIN_LABEL: "ours"}),
    virtual_node("virtual"),
)


def tolerating(key: str) -> dict[str, Any]:
    return {"tolerations": [{"key": key, "operator": "Exists"}]}


def requesting(kind: str) -> dict[str, Any]:
    return {"containers": [{"name": "main", "resources": {"requests": {kind: "1"}}}]}


@pytest.mark.parametrize(
    ("spec", "annotations", "nodes"),
    [
        ({}, {}, "plain ssd"),
        ({"nodeSelector": {"disk": "ssd"}}, {}, "ssd"),
        (tolerating("dedicated"), {}, "plain ssd tainted"),
        (tolerating("node.kubernetes.io/unschedulable"), {}, "cordoned plain ssd"),
        (tolerating("virtual-kubelet.io/provider"), {}, "plain ssd virtual"),
        (requesting(GPU), {}, "gpu"),
        (requesting(GPU), {GPU_TYPE: "A100"}, ""),
        ({}, {MACHINE_GROUP: "batch"}, "group"),
        ({"schedulerName": "ours"}, {}, "loop"),
        ({"schedulerName": "of somebody else"}, {}, "plain ssd"),
    ],
)
def test_a_pod_could_use_the_nodes_that_no_lasting_rejection_keeps_it_from(
    spec: Mapping[str, Any], annotations: Mapping[str, str], nodes: str
) -> None:
    assert LiveCluster(CLUSTER).by(pod_with(spec, annotations=annotations)) == nodes


def test_what_sits_on_a_node_does_not_matter() -> None:
    ports = {
        "containers": [
            {"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}], "resources": {"requests": {"cpu": "4"}}}
        ]
    }
    tested = LiveCluster(CLUSTER, [pod_with(ports, name=name, node=name) for name in ("plain", "ssd")])
    assert tested.by(pod_with(ports, name="next")) == "plain ssd"


def test_nodes_that_a_policy_rather_keeps_for_others_are_used_if_there_is_no_other() -> None:
    assert LiveCluster(CLUSTER, cards=SOFT).by(pod_with()) == "plain ssd"
    assert LiveCluster(CLUSTER[5:6], cards=SOFT).by(pod_with()) == "gpu"


def test_our_own_loops_run_the_policys_rule_of_cards_even_if_its_filters_leave_it_out() -> None:
    own = node_named("own", allocatable=GPUS, labels={DOMAIN_LABEL: "ours"})
    tested = LiveCluster([CLUSTER[5], own], names_cards=False)
    assert tested.by(pod_with({"schedulerName": "ours"})) == ""
    assert tested.by(pod_with()) == "gpu"


def test_pods_with_equal_constraints_share_a_mask_until_nodes_change() -> None:
    tested = LiveCluster(CLUSTER)
    pods = [pod_with(name=f"p{i}", labels={"app": str(i)}) for i in range(20)]
    masks, mask_of = tested.usable.usable_by([*pods, pod_with({"nodeSelector": {"disk": "ssd"}}, name="ssd")])
    assert len(masks) == 2 and mask_of.tolist() == [0] * 20 + [1]
    tested.put(replace(CLUSTER[0], taints=(Taint("new", "", "NoSchedule"),)))
    assert tested.by(pods[0]) == "ssd"
    tested.put(node_named("another"))
    assert tested.by(pods[0]) == "another ssd"
    tested.cluster.apply(tested.cluster.state.delete_node("ssd"))
    assert tested.by(pods[0]) == "another"
    tested.usable.rebuild()
    assert tested.by(pods[0]) == "another"


def test_the_pool_of_a_profile_has_the_nodes_for_its_ordinary_pods() -> None:
    tested = LiveCluster(CLUSTER)
    assert tested.pool(pod_with()) == "plain ssd"
    assert tested.pool(pod_with(tolerating("virtual-kubelet.io/provider"))) == "plain ssd"
    assert tested.pool(pod_with({"schedulerName": "ours"})) == "loop"
    assert tested.pool(pod_with({"schedulerName": "ours", **requesting(GPU)})) == ""


@pytest.mark.parametrize("cards", [HARD, SOFT])
def test_pods_with_devices_have_the_pool_of_the_nodes_that_offer_them(cards: ListedCards) -> None:
    tainted = node_named("tainted-gpu", allocatable=GPUS, taints=[Taint(GPU, "present", "NoSchedule")])
    tested = LiveCluster([*CLUSTER, tainted, node_named("old-gpu", allocatable=GPUS, unschedulable=True)], cards=cards)
    assert tested.pool(pod_with(requesting(GPU))) == "gpu tainted-gpu"
    assert tested.pool(pod_with()) == "plain ssd"
    assert tested.pool(pod_with(requesting("example.com/nowhere"))) == "plain ssd"


@pytest.mark.parametrize("seed", range(20))
def test_a_ready_node_that_passes_all_filters_is_always_usable(seed: int) -> None:
    cluster = random_cluster(Random(seed), 20, stateful=0.0)
    nodes = [decode_object(Kind.NODES, json.dumps(node).encode())[0] for node in cluster.nodes]
    sitting = [replace(decode_pod(pod), uid=pod["metadata"]["name"]) for pod in cluster.sitting]
    tested = LiveCluster([node for node in nodes if isinstance(node, NodeInfo)], sitting)
    filters = (*standard_filters(), Domain(), MachineGroup(), HARD)
    view = ClusterView(tested.cluster, PlacementIndex(tested.cluster.state))
    probes = [decode_pod(pod) for pod in cluster.probes]
    masks, mask_of = tested.usable.usable_by(probes)
    ready = np.array([node is not None and node.ready for node in tested.cluster.state.nodes])
    for pod, mask in zip(probes, mask_of.tolist(), strict=True):
        passes = verdict(pod, view, filters).passes & ready
        assert not (passes & ~masks[mask]).any(), pod
