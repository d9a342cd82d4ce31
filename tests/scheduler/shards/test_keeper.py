"""Replicas that share shards while they die, stand still, lag, are cut off and come back: never two for one node."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from kube.objects.constraints import LabelSelector, Operator, Requirement
from kube.objects.objects import PodInfo
from scorer.held_rooms import HeldRoom
from tests.scheduler.shards.fake_api_server import Fate
from tests.scheduler.shards.keeper_world import SHARDS, World
from tests.scheduler.shards.shard_world import COUNT, node, pod

TROUBLES = ["pause", "lag", "hangs", "slow", *(fate.value for fate in Fate if fate is not Fate.ANSWERED)]
OWNERS = LabelSelector((Requirement("app", Operator.IN, ("web",)),))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(TROUBLES), st.integers(0, 3), st.integers(1, 25)),
        st.tuples(st.sampled_from(["kill", "stop", "start"]), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("relabel"), st.integers(0, 5), st.integers(0, COUNT - 1)),
        st.tuples(st.just("want"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("wait"), st.just(0), st.integers(1, 20)),
    ),
    max_size=25,
)


@given(steps=STEPS)
def test_no_two_replicas_act_for_a_shard_and_no_node_gets_too_many_pods(steps: list[tuple[str, int, int]]) -> None:
    """Checked after every request, every binding and every half second."""
    note(f"{steps}")
    world = World(3, options=SHARDS.model_copy(update={"balance_every": 5.0}))
    world.seconds(6)
    for what, who, much in steps:
        _do(world, what, who, much)
        world.seconds(1)
    for one in world.replicas:
        one.until.clear()
    world.seconds(60)
    _assert_shared(world)
    bound = world.bound
    world.seconds(5)
    assert world.bound > bound


def _do(world: World, what: str, who: int, much: int) -> None:
    replica = world.replicas[who % len(world.replicas)]
    match what:
        case "kill" if len(world.replicas) > 1:
            world.kill(replica)
        case "stop" if len(world.replicas) > 1:
            world.stop(replica)
        case "start" if len(world.replicas) < 4:
            world.start()
        case "relabel":
            world.relabel(f"node-{who}", much)
        case "want" if (leader := world.leader()) is not None:
            leader.moves.want("unit", [f"node-{who}"])
        case "wait":
            world.seconds(much)
        case trouble if trouble in TROUBLES:
            replica.until[trouble] = world.now + much


def _assert_shared(world: World) -> None:
    """Within 20 s every shard is owned by one replica, every node is placed on by one, and all know all replicas."""
    shards, nodes, known = set[int](), set[str](), set[str]()
    for _ in range(20):
        owned = [one.keeper.seen().owned for one in world.replicas]
        owners = world.owners()
        assert sum(len(those) for those in owned) == len(frozenset().union(*owned)), owned
        assert all(len(those) <= 1 for those in owners.values()), owners
        shards |= frozenset().union(*owned)
        nodes |= {name for name, those in owners.items() if those}
        known |= {name for one in world.replicas for name in one.dispatcher.in_order("unit")}
        world.seconds(1)
    assert shards == set(range(COUNT)) and nodes == set(world.server.nodes)
    assert known == {one.identity for one in world.replicas}


def test_the_shards_of_one_that_was_killed_are_taken_when_they_have_expired() -> None:
    world = World(2)
    world.seconds(10)
    world.kill(world.replicas[0])
    world.seconds(5)
    assert len(world.replicas[0].keeper.seen().owned) == COUNT / 2
    world.seconds(10)
    _assert_shared(world)
    assert world.replicas[0].keeper.seen().taken_over == COUNT / 2


@pytest.mark.parametrize("trouble", ["hangs", "lag", Fate.REFUSED.value])
def test_a_replica_in_trouble_owns_nothing_and_says_why(trouble: str) -> None:
    world = World(2)
    world.seconds(10)
    first, second = world.replicas
    first.until[trouble] = 1e12
    world.seconds(30)
    assert first.keeper.seen().owned == frozenset() and first.own() == set()
    assert first.keeper.seen().trouble and not second.keeper.seen().trouble
    assert len(second.keeper.seen().owned) == COUNT
    first.until.clear()
    world.seconds(30)
    _assert_shared(world)


def test_the_leader_borrows_a_node_and_gives_it_back() -> None:
    world = World(2)
    world.seconds(10)
    leader = world.leader()
    assert leader is not None
    foreign = next(name for name, owners in world.owners().items() if leader.identity not in owners)
    leader.moves.want("unit", [foreign])
    world.seconds(6)
    assert world.owners()[foreign] == [leader.identity]
    leader.moves.served("unit")
    world.seconds(8)
    other = next(one for one in world.replicas if one is not leader)
    assert world.owners()[foreign] == [other.identity]


def test_leases_of_replicas_that_died_are_deleted() -> None:
    world = World(3)
    world.seconds(10)
    world.kill(world.replicas[2])
    assert len(world.server.leases) == COUNT + 3
    world.seconds(90)
    assert len(world.server.leases) == COUNT + 2


def test_a_leader_that_left_out_an_event_decides_alone_only_once_it_has_read_all_pods() -> None:
    """It is asked again, or leads again, before its next step: what was left out meanwhile is not in its tables."""
    world = World(2)
    world.seconds(6)
    leader = world.leader()
    assert leader is not None
    leader.keeper.decides_alone()
    world.seconds(3)
    assert leader.keeper.decides_alone()
    leader.clock.now += 1000.0
    assert not leader.keeper.follows_all()
    leader.clock.now -= 1000.0
    assert not leader.keeper.decides_alone()
    world.seconds(2)
    assert leader.keeper.decides_alone()


def test_one_that_begins_to_lead_looks_at_who_decides_about_waiting_pods() -> None:
    """The last leader's pods it did not follow."""
    world = World(2)
    world.seconds(8)
    first = world.leader()
    assert first is not None
    other = next(one for one in world.replicas if one is not first)
    before = other.n_used
    world.seconds(2)
    assert other.n_used == before
    other.leads_instead = True
    world.seconds(2)
    assert other.n_used > before


@pytest.mark.parametrize("change", ["a node comes", "a node is in another shard", "a room is held", "a room is taken"])
def test_who_decides_about_waiting_pods_is_looked_at_again(change: str) -> None:
    """Their own events came before, and no other may follow."""
    world = World(2)
    world.seconds(8)
    of_pods = [one.cluster for one in world.replicas]
    for cluster in of_pods:
        cluster.hold_room(HeldRoom(room_of("room-0"), OWNERS, 0.0, 1e12))
    world.seconds(2)
    used = [one.n_used for one in world.replicas]
    world.seconds(2)
    assert [one.n_used for one in world.replicas] == used
    match change:
        case "a node comes":
            world.server.put_node(replace(node("node-9", 0), labels={}))
        case "a node is in another shard":
            world.relabel("node-0", 1 - world.replicas[0].ownership.shard("node-0") % 2)
        case "a room is held":
            for cluster in of_pods:
                cluster.hold_room(HeldRoom(room_of("room-1"), OWNERS, 0.0, 1e12))
        case _:
            for cluster in of_pods:
                cluster.rooms.take(next(iter(cluster.rooms)), pod("web"))
    world.seconds(2)
    assert all(one.n_used > before for one, before in zip(world.replicas, used, strict=True))


def room_of(name: str) -> PodInfo:
    return replace(pod(name, "node-0", cpu=0.0), stands_in=True)
