"""Nodes whose kubelet insists on single NUMA zones, and what of them is let through."""

from __future__ import annotations

import numpy as np
import pytest

from kube.objects.objects import PodInfo, QosClass
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.topology.alignment import NOWHERE
from placement.topology.node_zones import Scope, TopologyManagerPolicy
from placement.topology.numa_filter import NodeResourceTopologyMatch
from tests.placement.devices.device_world import GPU
from tests.placement.small_cluster import rejections
from tests.placement.topology.zones_world import World, pod, zones

POD, CONTAINER = "node(s) cannot align pod", "node(s) cannot align container"
FREE = {GPU: 2.0, "cpu": 8.0}


def world() -> World:
    """`wide` has the same left as `restricted`, but its zones are larger."""
    made = World(dict.fromkeys(("pods", "containers", "restricted", "wide", "plain", "silent"), 8))
    made.publish(
        zones("pods", FREE, FREE),
        zones("containers", FREE, FREE, scope=Scope.CONTAINER),
        zones("restricted", FREE, FREE, policy=TopologyManagerPolicy.RESTRICTED),
        zones("wide", FREE, FREE, policy=TopologyManagerPolicy.RESTRICTED, total={GPU: 4.0, "cpu": 16.0}),
        zones("plain", FREE, FREE, policy=TopologyManagerPolicy.NONE),
    )
    return made


BOTH = {"pods": (POD, False), "containers": (CONTAINER, False)}
WIDE = BOTH | {"wide": (POD, False)}
ALL = WIDE | {"restricted": (POD, False)}


@pytest.mark.parametrize(
    ("asks", "expected"),
    [
        (pod("a", n=2, cpu=8), {}),
        (pod("a", n=3), WIDE),
        (pod("a", n=1, cpu=9), ALL),  # of `restricted` one zone has the card, and two have the CPUs
        (pod("a", n=3, cpu=9), WIDE),
        (pod("a", n=1, cpu=9.5), {}),  # no CPUs of its own
        (pod("a", n=3, cpu=1, qos=QosClass.BURSTABLE), WIDE),
        (pod("a", containers=[{GPU: 1}, {GPU: 1}, {GPU: 2}]), {"pods": (POD, False), "wide": (POD, False)}),
        (pod("a", containers=[{GPU: 2}, {GPU: 1}, {GPU: 2}]), ALL),
    ],
)
def test_who_is_let_through(asks: PodInfo, expected: dict[str, tuple[str, bool]]) -> None:
    made = world()
    assert rejections(NodeResourceTopologyMatch(made.zones), asks, made.view) == expected


def test_room() -> None:
    made = world()
    plugin = NodeResourceTopologyMatch(made.zones)
    rows = np.array([made.state.row_of[name] for name in ("silent", "containers", "pods", "restricted", "plain")])
    assert plugin.room(pod("a", n=1, cpu=4), made.view, rows).tolist() == [NOWHERE, 2, 2, 2, NOWHERE]
    assert plugin.room(pod("a", cpu=10), made.view, rows[3:]).tolist() == [1, NOWHERE]
    two = pod("a", containers=[{GPU: 1}, {"cpu": 1}])
    assert plugin.room(two, made.view, rows).tolist() == [NOWHERE, 1, 2, 2, NOWHERE]
    assert plugin.room(pod("a", qos=QosClass.BURSTABLE), made.view, rows).tolist() == [NOWHERE] * 5
    assert plugin.ignores_like_pods(pod("a", n=1), made.view) and not plugin.ignores_like_pods(two, made.view)


def test_hints() -> None:
    plugin = NodeResourceTopologyMatch(world().zones)
    asks = pod("a", n=3)
    assert plugin.hint(asks, ClusterEvent(EventKind.FORECAST_CHANGED)) is Hint.QUEUE
    assert plugin.hint(asks, ClusterEvent(EventKind.GROUP_CHANGED)) is Hint.SKIP
    assert plugin.hint(asks, ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=pod("b"))) is Hint.SKIP
    assert plugin.hint(asks, ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=asks)) is Hint.QUEUE


def test_pods_given_to_a_restricted_node_since_count_once() -> None:
    """Ten of sixteen CPUs: the next one would need zones of which these took some, whichever they are."""
    made = world()
    plugin = NodeResourceTopologyMatch(made.zones)
    made.assume(pod("first", cpu=6), "restricted")
    assert "restricted" not in rejections(plugin, pod("a", cpu=10), made.view)
    assert "restricted" in rejections(plugin, pod("a", cpu=11), made.view)


def test_a_node_of_more_zones_than_a_kubelet_allows_is_not_judged() -> None:
    made = World({"many": 0})
    made.publish(zones("many", *[{"cpu": 8.0}] * 9, policy=TopologyManagerPolicy.RESTRICTED, total={"cpu": 16.0}))
    assert rejections(NodeResourceTopologyMatch(made.zones), pod("a", cpu=9), made.view) == {}
