"""Gangs near each other, through the real cycle: the tightest level that holds them, and none if none must."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from tests.placement.topology.gang_world import HOST, RACK, ZONE, GangWorld, gang, gpu_node, worker

LEVELS = (HOST, RACK, ZONE)


def two_zones(free: str = "88 88 88 88") -> list[object]:
    """Nodes a0 a1 in rack a, b0 b1 in rack b, both of zone x; c, d of zone y. free: cards of each."""
    counts = [int(one) for one in free.replace(" ", "")]
    names = [f"{rack}{n}" for rack in "abcd" for n in range(2)]
    return [
        gpu_node(name, n, rack=name[0], zone="x" if name[0] in "ab" else "y")
        for name, n in zip(names, counts, strict=True)
    ]


def world_of(free: str, *pods: PodInfo) -> GangWorld:
    return GangWorld(two_zones(free), pods)  # type: ignore[arg-type]


def workers(count: int, n: int = 1, **more: float) -> list[PodInfo]:
    return [worker(f"w{i:02}", n, **more) for i in range(count)]  # type: ignore[arg-type]


def racks(placed: dict[str, str]) -> Counter[str]:
    return Counter(node[0] for node in placed.values())


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize(
    ("free", "count", "n", "nodes", "level"),
    [
        ("88 88 88 88", 4, 2, {"a0"}, 1),
        ("88 88 84 88", 4, 1, {"c1"}, 1),  # the smallest node that holds it
        ("44 48 33 79", 10, 1, {"b0", "b1"}, 2),  # the smallest rack
        ("44 33 22 22", 20, 1, {"a0", "a1", "b0", "b1", "c0", "c1", "d0", "d1"}, 0),
    ],
)
def test_the_tightest_level_that_holds_the_gang(
    free: str, count: int, n: int, nodes: set[str], level: int, one_by_one: bool
) -> None:
    world = world_of(free)
    placed = world.place(gang(count, *LEVELS), workers(count, n), one_by_one=one_by_one)
    assert len(placed) == count
    assert set(placed.values()) <= nodes
    if level:
        assert set(placed.values()) == nodes
    assert world.topology is not None and world.topology.chosen[level] == 1


def test_if_all_do_not_fit_anywhere_the_fewest_that_can_run_count() -> None:
    world = world_of("44 33 88 22")
    placed = world.place(gang(12, RACK), workers(20))
    assert len(placed) == 20 and racks(placed)["c"] == 16


def test_minima_of_roles_on_gpu_nodes() -> None:
    """Two cards are left for five workers of one card and a leader of two: the minimum of each role goes first."""
    pods = [*(worker(f"w{i}", 1, role="worker") for i in range(5)), worker("leader", 2, role="leader")]
    wanted = gang(3, RACK, roles={"leader": 1, "worker": 1})
    world = GangWorld([gpu_node("a0", 3, rack="a"), gpu_node("b0", 2, rack="b")])
    placed = world.place(wanted, pods)
    assert placed["leader"] == "a0" and "a0" in {node for uid, node in placed.items() if uid != "leader"}
    assert len(placed) == 4, "those beyond the minimum where there is room"
    too_small = GangWorld([gpu_node("a0", 2, rack="a"), gpu_node("b0", 0, rack="b")])
    decisions = too_small.run(wanted, pods)
    assert not decisions.placed and not set(too_small.cluster.assumed.uids())
    assert "role worker 0 of 1" in decisions.rejected[0].message
    assert too_small.devices.free_milli[too_small.view.state.row_of["a0"]].max() == 1000, "no card is held"


@pytest.mark.parametrize("one_by_one", [False, True])
def test_members_follow_those_that_sit(one_by_one: bool) -> None:
    """As after a restart in the middle: rack b is not the smallest, but somebody is there."""
    world = world_of("44 88 44 88", worker("w00", 1, node="b1"))
    placed = world.place(gang(8, *LEVELS), workers(8)[1:], one_by_one=one_by_one)
    assert set(placed.values()) == {"b1"} and len(placed) == 7


# Required


def test_a_domain_that_the_count_may_have_missed_is_tried() -> None:
    """Counted first, the two cards are taken from the node with the cores; there is another way."""
    nodes = [gpu_node("a0", 2, rack="a", cpu=8), gpu_node("a1", 2, rack="a", cpu=2), gpu_node("b0", 1, rack="b", cpu=8)]
    world = GangWorld(nodes)
    world.gangs.replace_groups([gang(2, required=RACK)])
    pods = [worker("cards", 2), worker("cores", cpu=8)]
    world.put(*pods)
    assert world.topology is not None
    with world.scorer.tables.reading():
        rejected = [one.nodes[:3].tolist() for one in world.topology.filter(pods[0], world.view)]
    assert rejected == [[False, False, True]]


def test_the_smallest_domain_that_holds_all() -> None:
    assert racks(world_of("88 44 88 66").place(gang(8, required=RACK), workers(8))) == {"b": 8}


def test_none_if_no_domain_holds_it_and_the_level_is_named() -> None:
    world = world_of("44 33 88 22")
    before = world.view.state.requested_units.copy()
    decisions = world.run(gang(17, required=RACK), workers(17))
    assert not decisions.placed and not set(world.cluster.assumed.uids())
    np.testing.assert_array_equal(world.view.state.requested_units, before)
    (rejected,) = decisions.rejected
    assert rejected.by == {"GangTopology"} and len(rejected.pods) == 17
    assert rejected.message == (
        "PodGroup ml/train is placed as a whole or not at all: 0 of 17 members fit: 0/8 nodes are available: "
        "8 node(s) were in no example.com/rack with room for the 17 members that PodGroup ml/train needs "
        "(at most 16 in one)"
    )


def test_members_beyond_the_minimum_stay_out_of_other_domains() -> None:
    world = world_of("44 33 88 22")
    decisions = world.run(gang(10, required=RACK), workers(20))
    assert racks({queued.pod.uid: node for queued, node in decisions.placed}) == {"c": 16}
    (rejected,) = {one.message for one in decisions.rejected}
    assert "6 node(s) were not in example.com/rack c, where PodGroup ml/train sits" in rejected


def test_what_is_preferred_is_so_within_what_is_required() -> None:
    """Zone y is the smallest that holds it; rack a of zone x, which would be tighter, no longer matters."""
    placed = world_of("99 44 55 64").place(gang(18, RACK, required=ZONE), workers(18))
    assert racks(placed) == {"c": 10, "d": 8}


def test_members_that_sit_have_chosen() -> None:
    world = world_of("44 33 88 22", worker("w00", 1, node="a1"))
    assert racks(world.place(gang(6, required=RACK), workers(6)[1:])) == {"a": 5}
    full = world_of("44 33 88 22", worker("w00", 1, node="a1"))
    decisions = full.run(gang(12, required=RACK), workers(12)[1:])
    assert not decisions.placed
    assert "where PodGroup ml/train sits" in decisions.rejected[0].message


def test_members_that_sit_apart_cannot_be_brought_together() -> None:
    world = world_of("44 33 88 22", worker("w00", 1, node="a1"), worker("w01", 1, node="c0"))
    decisions = world.run(gang(4, required=RACK), workers(4)[2:])
    assert not decisions.placed
    assert "can't bring PodGroup ml/train into one example.com/rack" in decisions.rejected[0].message


def test_nodes_without_the_label_are_in_no_domain() -> None:
    world = GangWorld([gpu_node("a0", 4, rack="a"), gpu_node("bare", 8)])
    decisions = world.run(gang(6, required=RACK), workers(6))
    assert not decisions.placed
    message = decisions.rejected[0].message
    assert "1 node(s) didn't have the label example.com/rack" in message and "(at most 4 in one)" in message
    assert set(world.place(gang(3, HOST, required=RACK), []).values()) == {"a0"}


def test_hints() -> None:
    world = world_of("88 88 88 88")
    topology, pod = world.topology, worker("w00", 1)
    assert topology is not None
    for event, expected in (
        (ClusterEvent(EventKind.GROUP_CHANGED, group="ml/train"), Hint.QUEUE),
        (ClusterEvent(EventKind.GROUP_CHANGED, group="ml/other"), Hint.SKIP),
        (ClusterEvent(EventKind.POD_LEFT, pod=worker("x", of="")), Hint.QUEUE),
        (ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=worker("w01")), Hint.QUEUE),
        (ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=worker("x", of="")), Hint.SKIP),
        (ClusterEvent(EventKind.FORECAST_CHANGED), Hint.SKIP),
    ):
        assert topology.hint(pod, event) is expected, event
