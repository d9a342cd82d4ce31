"""Nodes that are handed over and lent: one patch by their owner, on the version that it looked at."""

from __future__ import annotations

from typing import cast

from kubernetes.client import ApiClient

from kube.objects.objects import NodeInfo
from scheduler.shards.node_moves import NodeMoves
from scheduler.shards.node_shards import WANTED, HandedOver, handed_over, pods_digest, shard_of, wanted
from testing.settable_clock import SettableClock
from tests.scheduler.shards.fake_api_server import ApiServer, Client, Fate
from tests.scheduler.shards.shard_world import COUNT, Replica, node


class World:
    """One replica, whose tables follow the API server at once."""

    def __init__(self, *nodes: NodeInfo, owns: set[int]) -> None:
        self.server, self.replica, self.fate = ApiServer(), Replica(owns=owns), Fate.ANSWERED
        self.wall, self.request_seconds = SettableClock(1.7e9), 0.0
        self.moves = NodeMoves(
            cast(ApiClient, Client(self.server, lambda: self.fate, lambda: self.later(self.request_seconds))),
            self.replica.ownership,
            locked=self.replica.locked,
            may_act=lambda shard: shard in self.replica.held,
            loan=10.0,
            most=2,
            clock=self.replica.clock,
            wall=self.wall,
        )
        for one in nodes:
            self.server.put_node(one)
        self.follow()

    def follow(self) -> None:
        self.replica.put(*self.server.nodes.values())

    def step(self, leader_shard: int = -1) -> None:
        self.moves.step(leader_shard)
        self.follow()

    def later(self, seconds: float) -> None:
        self.replica.clock.now += seconds
        self.wall.now += seconds

    def shard(self, name: str) -> int:
        return shard_of(self.server.nodes[name], COUNT)


def test_a_replica_that_lost_its_shard_hands_nothing_over() -> None:
    world = World(node("a", 0), owns={0})
    world.moves.begin("a", 2)
    world.replica.held.clear()
    world.step()
    assert world.shard("a") == 0 and world.moves.handed_over == 0


def test_no_more_than_so_many_leave_at_once() -> None:
    world = World(*(node(name, 0) for name in "abc"), owns={0})
    assert [world.moves.begin(name, 1) for name in "abc"] == [True, True, False]
    assert not world.moves.begin("unknown", 1)


def test_a_node_that_the_leader_asks_for_is_lent_and_knows_its_home() -> None:
    world = World(node("a", 0, annotations={WANTED: '{"to":3,"until":1700000010}'}), owns={0})
    world.step()
    assert handed_over(world.server.nodes["a"]) == HandedOver(0, 3, pods_digest(()), home=0)
    assert wanted(world.server.nodes["a"]) is None and world.moves.lent == 1


def test_the_leader_asks_once_and_again_before_its_wish_is_over() -> None:
    """The owner may have died, or have had too many nodes on their way."""
    world = World(node("a", 1), node("b", 0), owns={0})
    world.moves.want("unit", ["a", "b"])
    world.step(leader_shard=0)
    first = wanted(world.server.nodes["a"])
    assert first is not None and first.to == 0 and wanted(world.server.nodes["b"]) is None
    version = world.server.versions["a"]
    world.later(1.0)
    world.moves.want("unit", ["a"])
    world.step(leader_shard=0)
    assert world.server.versions["a"] == version
    for _ in range(10):
        world.later(1.0)
        world.moves.want("unit", ["a"])
        world.step(leader_shard=0)
    again = wanted(world.server.nodes["a"])
    assert again is not None and again.until > world.wall.now


def test_a_lent_node_goes_home_when_the_unit_is_served_or_its_time_is_over() -> None:
    for ends in ("served", "time"):
        world = World(node("a", 1), owns={0})
        world.moves.want("unit", ["a"])
        world.server.put_node(node("a", 0, HandedOver(1, 0, pods_digest(()), home=1)))
        world.follow()
        world.replica.ownership.welcome()
        world.step(leader_shard=0)
        assert world.shard("a") == 0
        if ends == "served":
            world.moves.served("unit")
        else:
            world.later(10.0)
        world.step(leader_shard=0)
        world.step(leader_shard=0)
        assert world.shard("a") == 1
        assert handed_over(world.server.nodes["a"]) == HandedOver(0, 1, pods_digest(()))


def test_slow_answers_end_a_step_early() -> None:
    world = World(node("a", 0), node("b", 0), node("c", 1), node("d", 1), owns={0})
    world.request_seconds = 1.5
    assert world.moves.begin("a", 2) and world.moves.begin("b", 2)
    world.step()
    assert world.moves.handed_over == 1
    world.step()
    assert world.moves.handed_over == 2
    world.request_seconds = 2.5
    world.moves.want("unit", ["c", "d"])
    for n_asked in (1, 2):
        world.step(leader_shard=0)
        assert sum(wanted(one) is not None for one in world.server.nodes.values()) == n_asked
