"""What zones have left: published, less what cannot be included yet; the same after a restart."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kube.objects.objects import PodPhase
from placement.node_rule_settings import TopologyOptions
from placement.topology.alignment import NOWHERE
from placement.topology.node_zones import NO_LAYOUT, Scope, TopologyManagerPolicy
from placement.topology.zone_table import ZoneChanges
from testing.constants import with_constants
from tests.placement.devices.device_world import GPU
from tests.placement.topology.zones_world import NOW, World, pod, zones

FOUR = {GPU: 4.0, "cpu": 16.0}


def world_of_one(*pods: object, **options: float) -> World:
    world = World({"n1": 8}, pods, with_constants(TopologyOptions(), **options))  # type: ignore[arg-type]
    world.publish(zones("n1", FOUR, FOUR))
    return world


def test_what_was_published() -> None:
    world = World({"n1": 8, "n2": 8})
    world.publish(
        zones("n1", FOUR, {GPU: 3.0}, scope=Scope.CONTAINER), zones("n2", FOUR, policy=TopologyManagerPolicy.RESTRICTED)
    )
    assert world.left("n1") == [4, 3] and world.left("n1", "cpu") == [16_000, 0]
    assert world.left("n2") == [4]
    rows = [world.state.row_of[name] for name in ("n1", "n2")]
    assert world.zones.is_single[rows].tolist() == [True, False]
    assert world.zones.is_pod_scope[rows].tolist() == [False, True]
    assert len(world.zones) == 2


def test_a_pod_counts_in_every_zone_until_something_is_published_after_its_start() -> None:
    world = world_of_one()
    world.assume(pod("a", n=2, cpu=4), "n1")
    assert world.left("n1") == [2, 2] and world.left("n1", "cpu") == [12_000, 12_000]
    world.publish(zones("n1", FOUR, FOUR))
    assert world.left("n1") == [2, 2], "it has not started"
    world.now += 5
    world.put(pod("a", "n1", n=2, cpu=4, started=world.now))
    world.publish(zones("n1", FOUR, FOUR))
    assert world.left("n1") == [2, 2], "what comes at the same moment may be of before"
    world.now += 3
    world.publish(zones("n1", {GPU: 2.0, "cpu": 12.0}, FOUR))
    assert world.left("n1") == [2, 4]
    assert world.zones.unsettled == 0
    world.put(pod("a", "n1", n=2, cpu=4, started=NOW + 5, phase=PodPhase.RUNNING, labels={"x": "y"}))
    assert world.left("n1") == [2, 4], "a change of something else is none here"
    world.cluster.delete_pod("default/a")
    world.put(pod("a", "n1", n=2, cpu=4, started=NOW + 5))
    assert world.left("n1") == [2, 4], "nor is one that was only taken out to see what happens then"


def test_a_pod_is_included_after_a_while_although_nothing_is_published() -> None:
    world = world_of_one(settle=60.0)
    world.put(pod("a", "n1", n=1, started=NOW))
    assert world.left("n1") == [3, 3]
    world.now += 59
    world.zones.catch_up()
    assert world.left("n1") == [3, 3]
    world.now += 2
    world.zones.catch_up()
    assert world.left("n1") == [4, 4]


def test_nodes_may_come_after_their_objects_and_go_before_them() -> None:
    world = World({})
    world.publish(zones("n1", FOUR))
    world.put(pod("a", "n1", n=1))
    assert world.left("n1") == [3]
    row = world.state.row_of["n1"]
    world.cluster.delete_pod("default/a")
    assert not world.zones.is_single[row : row + 1].any() or world.state.names[row] == "n1"
    world.put(pod("b", "n2", n=1))  # in the same row
    assert world.state.row_of["n2"] == row
    assert not world.zones.is_single[row] and world.zones.layouts[int(world.zones.layout[row])] is NO_LAYOUT


def test_objects_that_are_gone() -> None:
    world = World({"n1": 8, "n2": 8})
    first, second = zones("n1", FOUR), zones("n2", FOUR)
    world.publish(first, second)
    world.zones.news.delete(first)
    world.zones.catch_up()
    assert len(world.zones) == 1 and not world.zones.is_single[world.state.row_of["n1"]]
    world.zones.news.replace([first])
    world.zones.catch_up()
    assert len(world.zones) == 1 and world.zones.is_single[world.state.row_of["n1"]]


def test_who_waits_is_told_once_there_may_be_room() -> None:
    world = world_of_one()
    told: list[int] = []
    world.zones.on_room.append(lambda: told.append(1))
    world.zones.tick()
    assert not told, "nobody waits"
    world.zones.awaited()
    world.zones.tick()
    assert told == [1], "objects have come since"
    world.zones.awaited()
    world.zones.tick()
    assert told == [1]
    world.zones.news.put(zones("n1", FOUR, FOUR))
    world.zones.tick()
    assert told == [1, 1]


def test_more_zones_and_resources_than_there_is_space_for() -> None:
    world = World({"n1": 8})
    many = {f"example.com/r{n}": 1.0 for n in range(80)}
    world.publish(zones("n1", *[many | {GPU: 1.0} for _ in range(5)]))
    assert world.left("n1", "example.com/r3") == [1] * 5
    left = world.zones.left(np.array([0]))
    assert len(left.kinds) == 64 and (left.units[0, 0, : len(left.kinds)] != NOWHERE).all()


class Following(RuleBasedStateMachine):
    """A table that has followed is one that starts now."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World({"n1": 8, "n2": 8}, options=with_constants(TopologyOptions(), settle=30.0))

    nodes = st.sampled_from(["n1", "n2"])
    names = st.sampled_from("abcd")

    @rule(node=nodes, first=st.integers(0, 4), second=st.integers(0, 4), seconds=st.integers(0, 20))
    def published(self, node: str, first: int, second: int, seconds: int) -> None:
        self.world.now += seconds
        self.world.publish(zones(node, {GPU: float(first)}, {GPU: float(second)}))

    @rule(name=names, node=nodes, n=st.integers(1, 3))
    def assumed(self, name: str, node: str, n: int) -> None:
        if f"default/{name}" not in self.world.state.pods:
            self.world.assume(pod(name, n=n), node)

    @rule(name=names, ago=st.integers(0, 40))
    def started(self, name: str, ago: int) -> None:
        known = self.world.state.pods.get(f"default/{name}")
        if known is not None and known.node and known.started is None:
            cards = int(known.requests[GPU])
            self.world.put(pod(name, known.node, n=cards, started=self.world.now - ago))

    @rule(name=names)
    def gone(self, name: str) -> None:
        self.world.cluster.delete_pod(f"default/{name}")

    @rule(seconds=st.integers(1, 40))
    def waits(self, seconds: int) -> None:
        self.world.now += seconds

    @invariant()
    def it_is_what_one_that_starts_now_makes_of_the_same(self) -> None:
        world = self.world
        world.zones.catch_up()
        fresh = world.new_zones()
        for node, one in world.zones._objects.items():
            fresh.news._news.append(ZoneChanges((one,), world.zones._published[node]))
        fresh.catch_up()
        assert fresh._unsettled == world.zones._unsettled
        rows = np.arange(world.state.n_rows)
        np.testing.assert_array_equal(world.zones.is_single, fresh.is_single)
        mine, others = world.zones.left(rows), fresh.left(rows)
        for kind in mine.kinds:
            own, other = mine.units[..., mine.kinds[kind]], others.units[..., others.kinds[kind]]
            np.testing.assert_array_equal(own[mine.there], other[others.there])

    @invariant()
    def pods_that_have_not_started_are_held_back_from_every_zone(self) -> None:
        world = self.world
        for node, row in world.state.row_of.items():
            held = {uid for uid, one in world.zones._unsettled.items() if one.node == node}
            assert {one.uid for one in world.state.pods.values() if one.node == node and one.started is None} <= held
            if world.zones.is_single[row]:
                taken = sum(int(world.state.pods[uid].requests[GPU]) for uid in held)
                found = [zone.available[GPU] - taken for zone in world.zones._objects[node].zones]
                assert world.left(node) == found


TestFollowing = Following.TestCase
TestFollowing.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
