"""Hyper-threads: pods that a kubelet would refuse are not sent there, and cores in use are filled before others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kube.objects.objects import PodInfo, QosClass
from placement.topology.node_zones import MULTITHREADING, CpuManager, NodeZones, Scope, TopologyManagerPolicy
from placement.topology.numa_filter import NodeResourceTopologyMatch
from placement.topology.whole_cores import WholeCores
from tests.placement.devices.device_world import card_node
from tests.placement.small_cluster import rejections
from tests.placement.topology.zones_world import World, pod, zones

PART = "node(s) give whole physical cores only, and the pod requests a part of one"
FEW = "node(s) had too few whole physical cores"
SMT = CpuManager(threads_per_core=2)
FULL = CpuManager(threads_per_core=2, full_cores=True)


def node(
    name: str,
    *left: float,
    cpus: CpuManager = SMT,
    policy: TopologyManagerPolicy = TopologyManagerPolicy.SINGLE_NUMA_NODE,
) -> NodeZones:
    return zones(name, *({"cpu": one} for one in left), policy=policy, total={"cpu": 16.0}, cpus=cpus)


def world_of(*published: NodeZones, silent: int = 0) -> World:
    """silent: nodes that publish nothing."""
    made = World(dict.fromkeys([*(one.node for one in published), *(f"silent-{n}" for n in range(silent))], 0))
    made.publish(*published)
    return made


def preferred(made: World, asks: PodInfo, n_pods: int = 1) -> tuple[list[str], int]:
    found = WholeCores(made.zones).prefer(asks, n_pods, made.view, np.arange(made.state.n_rows))
    return [made.state.names[row] for row in found.rows.tolist()], found.most


# What is refused


@pytest.mark.parametrize(
    ("asks", "why"),
    [
        (pod("a", cpu=4), ""),
        (pod("a", cpu=3), PART),
        (pod("a", cpu=3, qos=QosClass.BURSTABLE), ""),
        (pod("a", containers=[{"cpu": 1}, {"cpu": 1}]), PART),
        (pod("a", containers=[{"cpu": 2}], starting=[{"cpu": 1}]), PART),
        (pod("a", cpu=14), FEW),
        (pod("a", containers=[{"cpu": 8}], starting=[{"cpu": 8}]), FEW),  # the kubelet does not count what is reused
    ],
)
@pytest.mark.parametrize("policy", [TopologyManagerPolicy.NONE, TopologyManagerPolicy.BEST_EFFORT])
def test_full_pcpus_only(policy: TopologyManagerPolicy, asks: PodInfo, why: str) -> None:
    """7 CPUs are left in each zone, of which one has a sibling that is in use."""
    made = world_of(node("full", 7.0, 7.0, cpus=FULL, policy=policy), node("free", 7.0, 7.0, policy=policy), silent=1)
    expected = {"full": (why, False)} if why else {}
    assert rejections(NodeResourceTopologyMatch(made.zones), asks, made.view) == expected


def test_nothing_is_pinned_by_policy_none_of_the_cpu_manager() -> None:
    made = world_of(node("full", 1.0, 1.0, cpus=replace(FULL, pins=False)))
    assert rejections(NodeResourceTopologyMatch(made.zones), pod("a", cpu=3), made.view) == {}


@pytest.mark.parametrize(
    ("labels", "is_refused"),
    [
        ({MULTITHREADING: "true", "kubernetes.io/arch": "amd64"}, True),
        ({MULTITHREADING: "true", "kubernetes.io/arch": "ppc64le"}, False),
        ({MULTITHREADING: "false", "kubernetes.io/arch": "amd64"}, False),
        ({}, False),
    ],
)
def test_the_label_of_node_feature_discovery(labels: dict[str, str], is_refused: bool) -> None:
    made = world_of(node("full", 8.0, cpus=replace(FULL, threads_per_core=0), policy=TopologyManagerPolicy.NONE))
    made.cluster.put(replace(card_node("full", 0), labels=labels))
    found = rejections(NodeResourceTopologyMatch(made.zones), pod("a", cpu=3), made.view)
    assert found == ({"full": (PART, False)} if is_refused else {})


# What is preferred


def test_a_core_in_use_is_filled_before_another_is_broken() -> None:
    made = world_of(node("broken", 7.0), node("whole", 8.0), silent=1)
    assert preferred(made, pod("a", cpu=1), 9) == (["broken"], 1)
    assert preferred(made, pod("a", cpu=3), 9) == (["broken"], 1)
    assert preferred(made, pod("a", cpu=2), 9) == (["broken", "whole", "silent-0"], 9)
    assert preferred(made, pod("a", cpu=1, qos=QosClass.BURSTABLE), 9)[1] == 9


def test_pods_that_are_new_count_where_the_kubelet_has_probably_put_them() -> None:
    made = world_of(node("n1", 8.0, 8.0), node("n2", 8.0, 8.0))
    made.assume(pod("new", cpu=1), "n1")
    assert made.left("n1", "cpu") == [7000, 7000] and made.left("n1", "cpu", expected=True) == [7000, 8000]
    assert preferred(made, pod("a", cpu=1))[0] == ["n1"]
    made.assume(pod("large", cpu=8), "n1")
    assert made.left("n1", "cpu", expected=True) == [7000, 0]
    made.assume(pod("larger", cpu=8), "n1")
    assert made.left("n1", "cpu", expected=True) == [-1000, 0], "more than there is room for: whatever it says is right"


def test_best_effort_nodes_that_can_align_come_first() -> None:
    plain = CpuManager()
    split = node("split", 3.0, 3.0, cpus=plain, policy=TopologyManagerPolicy.BEST_EFFORT)
    whole = node("whole", 1.0, 14.0, cpus=plain, policy=TopologyManagerPolicy.BEST_EFFORT)
    made = world_of(split, whole, silent=1)
    assert preferred(made, pod("a", cpu=4), 9) == (["whole", "silent-0"], 3)
    assert preferred(made, pod("a", cpu=2), 9) == (["split", "whole", "silent-0"], 1)
    assert preferred(made, pod("a", cpu=2, qos=QosClass.BURSTABLE), 9)[1] == 9
    made.publish(replace(split, scope=Scope.CONTAINER), replace(whole, scope=Scope.CONTAINER))
    two = pod("a", containers=[{"cpu": 3}, {"cpu": 3}])
    assert preferred(made, two)[0] == ["split", "whole", "silent-0"]
    three = pod("a", containers=[{"cpu": 3}, {"cpu": 3}, {"cpu": 1}])
    assert preferred(made, three)[0] == ["whole", "silent-0"]
    made.publish(
        *(node(one, 11.0, 11.0, cpus=plain, policy=TopologyManagerPolicy.BEST_EFFORT) for one in ("split", "whole"))
    )
    assert preferred(made, pod("a", cpu=20), 9)[0] == ["split", "whole", "silent-0"], "two zones are the fewest"
