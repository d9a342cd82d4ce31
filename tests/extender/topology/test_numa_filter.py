"""Nodes whose kubelet insists on single NUMA zones, and what of them is let through."""

from __future__ import annotations

import numpy as np
import pytest

from extender.framework.events import ClusterEvent, EventKind
from extender.framework.plugins import Hint
from extender.topology.alignment import NOWHERE
from extender.topology.node_zones import Policy, Scope
from extender.topology.numa_filter import NodeResourceTopologyMatch
from scorer.cluster.objects import PodInfo, QosClass
from tests.extender.small_cluster import rejections
from tests.extender.topology.gang_world import GangWorld, gang, gpu_node, worker
from tests.extender.topology.zones_world import GPU, World, pod, zones

POD, CONTAINER = "node(s) cannot align pod", "node(s) cannot align container"
FREE = {GPU: 2.0, "cpu": 8.0}


def world() -> World:
    made = World(dict.fromkeys(("pods", "containers", "restricted", "plain", "silent"), 8))
    made.publish(
        zones("pods", FREE, FREE),
        zones("containers", FREE, FREE, scope=Scope.CONTAINER),
        zones("restricted", FREE, FREE, policy=Policy.RESTRICTED),
        zones("plain", FREE, FREE, policy=Policy.NONE),
    )
    return made


BOTH = {"pods": (POD, False), "containers": (CONTAINER, False)}


@pytest.mark.parametrize(
    ("asks", "expected"),
    [
        (pod("a", n=2, cpu=8), {}),
        (pod("a", n=3), BOTH),
        (pod("a", n=1, cpu=9), BOTH),
        (pod("a", n=1, cpu=9, qos=QosClass.BURSTABLE), {}),
        (pod("a", n=3, cpu=1, qos=QosClass.BURSTABLE), BOTH),
        (pod("a", cpu=9, qos=QosClass.BURSTABLE), {}),
        (pod("a", containers=[{GPU: 2, "cpu": 1}, {GPU: 2, "cpu": 1}]), {"pods": (POD, False)}),
        (pod("a", containers=[{GPU: 1}, {GPU: 1}, {GPU: 2}]), {"pods": (POD, False)}),
        (pod("a", containers=[{GPU: 2}, {GPU: 1}, {GPU: 2}]), BOTH),
        (pod("a", cpu=100, n=0, qos=QosClass.BEST_EFFORT), {}),
    ],
)
def test_who_is_let_through(asks: PodInfo, expected: dict[str, tuple[str, bool]]) -> None:
    made = world()
    assert rejections(NodeResourceTopologyMatch(made.zones), asks, made.view) == expected


def test_pods_given_to_the_node_since_count() -> None:
    made = world()
    plugin = NodeResourceTopologyMatch(made.zones)
    made.assume(pod("first", n=1), "pods")
    assert rejections(plugin, pod("a", n=2), made.view) == {"pods": (POD, False)}
    made.cluster.forget("default/first")
    assert rejections(plugin, pod("a", n=2), made.view) == {}


def test_room() -> None:
    made = world()
    plugin = NodeResourceTopologyMatch(made.zones)
    rows = np.array([made.state.row_of[name] for name in ("silent", "containers", "pods", "plain")])
    assert plugin.room(pod("a", n=1, cpu=4), made.view, rows).tolist() == [NOWHERE, 2, 2, NOWHERE]
    two = pod("a", containers=[{GPU: 1}, {"cpu": 1}])
    assert plugin.room(two, made.view, rows).tolist() == [NOWHERE, 1, 2, NOWHERE]
    assert plugin.room(pod("a", qos=QosClass.BURSTABLE), made.view, rows).tolist() == [NOWHERE] * 4


def test_who_was_rejected_is_awaited() -> None:
    made = world()
    told: list[int] = []
    made.zones.on_room.append(lambda: told.append(1))
    plugin = NodeResourceTopologyMatch(made.zones)
    plugin.filter(pod("a", n=1), made.view)
    made.zones.tick()
    assert not told
    plugin.filter(pod("a", n=9), made.view)
    made.zones.tick()
    assert told


def test_news_that_have_just_come_count() -> None:
    made = world()
    made.zones.news.put(zones("pods", {GPU: 8.0}))
    plugin = NodeResourceTopologyMatch(made.zones)
    assert rejections(plugin, pod("a", n=3), made.view) == {"containers": (CONTAINER, False)}


def test_hints() -> None:
    plugin = NodeResourceTopologyMatch(world().zones)
    asks = pod("a", n=3)
    assert plugin.hint(asks, ClusterEvent(EventKind.FORECAST_CHANGED)) is Hint.QUEUE
    assert plugin.hint(asks, ClusterEvent(EventKind.GROUP_CHANGED)) is Hint.SKIP
    assert plugin.hint(asks, ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=pod("b"))) is Hint.SKIP
    assert plugin.hint(asks, ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=asks)) is Hint.QUEUE


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_batch_gives_what_one_by_one_gives(one_by_one: bool) -> None:
    """Two cards in each zone, and a pod may take from either: two pods of one card, then the node has to publish."""
    made = GangWorld([gpu_node("a0", 4), gpu_node("b0", 2)])
    made.zones.news.put(zones("a0", {GPU: 2.0}, {GPU: 2.0}))
    decisions = made.run(gang(1), [worker(f"w{i}", 1) for i in range(6)], one_by_one=one_by_one)
    assert sorted(node for _, node in decisions.placed) == ["a0", "a0", "b0", "b0"]
    message = decisions.rejected[0].message
    assert "1 node(s) cannot align pod" in message and "1 Insufficient nvidia.com/gpu" in message
