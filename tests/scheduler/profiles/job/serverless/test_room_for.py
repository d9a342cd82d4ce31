"""How many expected pods virtual nodes would take: only nodes that jobs may use count, as far as pods fit there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kube.objects.objects import NodeInfo, Taint
from placement.virtual_nodes.options import First, Provider
from tests.scheduler.profiles.job.serverless.providers_world import GIB, World, job_pod, provider_node, real_node

REQUESTS = {"cpu": 2.0, "memory": GIB}


def room(world: World, *, of: frozenset[str] | None = None) -> int:
    """of: names of the nodes that jobs may use; None = all."""
    return world.serverless.room_for(REQUESTS, world.cluster.state, lambda node: of is None or node.name in of)


def tainted(node: NodeInfo, key: str, effect: str) -> NodeInfo:
    return replace(node, taints=(*node.taints, Taint(key, "", effect)))


USABLE = provider_node("v", "p", cpu=60.0)


@pytest.mark.parametrize(
    ("node", "pods"),
    [
        (USABLE, 30),
        (tainted(USABLE, "whatever", "PreferNoSchedule"), 30),
        (replace(USABLE, ready=False), 0),
        (replace(USABLE, unschedulable=True), 0),
        (tainted(USABLE, "team", "NoSchedule"), 0),
        (tainted(USABLE, "team", "NoExecute"), 0),
        (tainted(USABLE, "virtual-kubelet.io/provider", "NoExecute"), 0),
        (real_node("v", cpu=60.0), 0),
    ],
)
def test_nodes_that_take_no_pods_have_no_room_for_them(node: NodeInfo, pods: int) -> None:
    assert room(World([real_node(), node], Provider(name="p"))) == pods


def test_nodes_of_other_domains_have_none() -> None:
    world = World([USABLE, replace(USABLE, name="w")], Provider(name="p"))
    assert [room(world), room(world, of=frozenset({"w"})), room(world, of=frozenset())] == [60, 30, 0]


def test_a_provider_without_limits_has_the_room_of_its_nodes_and_one_with_limits_no_more() -> None:
    nodes = [USABLE, provider_node("w", "q", cpu=400.0), provider_node("x", cpu=10.0)]
    world = World(nodes, Provider(name="p"), Provider(name="q", most_pods=7))
    assert room(world) == 30 + 7 + 5
    world.put(*(bound := [replace(job_pod(f"on-{i}", cpu=3.0), node="v") for i in range(10)]))
    assert len(bound) == 10
    assert room(world) == 15 + 7 + 5
    with_card = REQUESTS | {"example.com/card": 1.0}
    assert world.serverless.room_for(with_card, world.cluster.state) == 0, "which no node has"


def test_none_where_providers_come_after_the_cluster_and_their_taint_counts_where_nobody_tolerates_it() -> None:
    assert room(World([USABLE], Provider(name="p"), first=First.CLUSTER)) == 0
    assert room(World([USABLE], Provider(name="p"), tolerate=False)) == 0
    assert room(World([real_node()], Provider(name="p"))) == 0
