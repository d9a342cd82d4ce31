"""Which nodes are ours: none that arrives before its pods are known, none that leaves, none whose Lease is lost."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.held_rooms import HeldRoom
from kube.objects.constraints import LabelSelector
from placement.filters.filter import ClusterView
from placement.index.index import PlacementIndex
from placement.status import Code
from scheduler.shards.node_shards import SHARD_LABEL, WANTED, HandedOver, pods_digest
from testing.objects import pod_info
from tests.placement.small_cluster import rejections
from tests.scheduler.shards.shard_world import COUNT, SETTLE, Replica, node, pod

EMPTY = pods_digest(())


def test_the_filter_rejects_the_nodes_of_others_and_no_preemption_helps() -> None:
    replica = Replica(node("a", 0), node("b", 1), owns={0})
    view = ClusterView(replica.cluster, PlacementIndex(replica.cluster.state))
    rejected = rejections(replica.ownership, pod("pod"), view)
    assert rejected == {"b": ("node(s) belonged to another replica", False)}
    with replica.ownership.lifted():
        assert rejections(replica.ownership, pod("pod"), view) == {}
    assert rejections(replica.ownership, pod("pod"), view) == rejected


def test_nothing_is_bound_once_the_lease_is_lost() -> None:
    """The guard asks the Lease itself: the keeper may not have run since."""
    replica = Replica(node("a", 0), owns={0})
    assert asyncio.run(replica.ownership.bind(pod("pod"), "a")).code is Code.SKIP
    replica.held.clear()
    assert asyncio.run(replica.ownership.bind(pod("pod"), "a")).code is Code.UNSCHEDULABLE
    assert "another replica" in replica.ownership.why_not("a")
    assert not replica.ownership.owns_any()
    assert replica.ownership.why_not("unknown")


def test_a_node_is_quiet_once_no_pod_of_ours_is_on_its_way() -> None:
    replica = Replica(node("a", 0), node("b", 0), owns={0})
    one = pod("one")
    replica.assume(one, "a")
    assert not replica.ownership.is_quiet(["a"]) and replica.ownership.is_quiet(["b", "unknown"])
    replica.put(pod("one", on="a"))
    assert replica.ownership.is_quiet(["a", "b"])


# Arriving


def test_a_node_that_was_handed_over_waits_for_the_pods_of_its_last_owner() -> None:
    replica = Replica(node("a", 1), owns={0})
    replica.put(node("a", 0, HandedOver(1, 0, pods_digest(["one"]))))
    assert replica.own() == set() and replica.bindable() == set()
    assert not replica.ownership.welcome() and replica.own() == set()
    replica.put(pod("one", on="a"))
    assert replica.ownership.welcome() and replica.own() == replica.bindable() == {"a"}


@pytest.mark.parametrize("record", [None, HandedOver(2, 0, EMPTY), HandedOver(1, 3, EMPTY)])
def test_a_label_that_another_client_changed_lets_the_node_rest(record: HandedOver | None) -> None:
    """Its last owner may still have pods on the way. A record of another hand-over counts as none."""
    replica = Replica(node("a", 1), owns={0})
    replica.put(node("a", 0, record))
    replica.clock.now += SETTLE - 0.1
    assert not replica.ownership.welcome(read_since=replica.clock.now) and not replica.ownership.overdue(2.0)
    replica.clock.now += 0.1
    assert not replica.ownership.welcome(), "there is no digest to compare"
    assert replica.ownership.overdue(2.0)
    assert replica.ownership.welcome(read_since=replica.clock.now) and replica.own() == {"a"}


def test_stand_ins_of_reservations_are_no_pods_of_the_digest() -> None:
    """The API server has no such pods: the next owner may know another state of the Reservation."""
    replica = Replica(node("a", 0), owns={0})
    stand_in = pod_info("room", node="a", stands_in=True, requests={"cpu": 1.0})
    replica.cluster.hold_room(HeldRoom(stand_in, LabelSelector(), 0.0, 1e12))
    assert "room" in replica.cluster.state.seat_of and replica.ownership.digest("a") == EMPTY


# Loans


def test_a_wish_is_the_owners() -> None:
    asked = {WANTED: '{"to":3,"until":5.0}'}
    replica = Replica(node("a", 0, annotations=asked), node("b", 1, annotations=asked), owns={0})
    assert [(name, wish.to) for name, wish in replica.ownership.wishes(30.0)] == [("a", 3)]
    replica.put(node("a", 0))
    assert replica.ownership.wishes(30.0) == []
    replica.put(node("a", 0, annotations={WANTED: "damaged"}))
    assert replica.ownership.wishes(30.0) == []


# All together

NAMES = ["a", "b", "c"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(NAMES), st.integers(0, COUNT - 1)),
        st.tuples(st.just("hand over"), st.sampled_from(NAMES), st.integers(0, COUNT - 1)),
        st.tuples(st.just("delete"), st.sampled_from(NAMES), st.just(0)),
        st.tuples(st.sampled_from(["leave", "stay"]), st.sampled_from(NAMES), st.just(0)),
        st.tuples(st.just("use"), st.just(""), st.integers(0, 2**COUNT - 1)),
        st.tuples(st.sampled_from(["wait", "welcome", "rebuild"]), st.just(""), st.just(0)),
    ),
    max_size=40,
)


@given(steps=STEPS)
def test_what_is_ours_follows_every_change(steps: list[tuple[str, str, int]]) -> None:
    """A model in plain sets: of which shard a node is, which arrive, which leave."""
    replica = Replica(owns={0})
    shards: dict[str, int] = {}
    gone: dict[str, tuple[int, float]] = {}
    arriving, leaving, usable = set[str](), set[str](), {0}
    for what, name, number in steps:
        match what:
            case "put" | "hand over":
                last, until = gone.pop(name, (number, 0.0))
                before = shards.get(name, last if replica.clock.now < until else number)
                record = HandedOver(before, number, EMPTY) if what == "hand over" else None
                replica.put(node(name, number, record))
                if before != number:
                    arriving.add(name)
                    leaving.discard(name)
                shards[name] = number
            case "delete" if name in shards:
                replica.cluster.delete(node(name, 0))
                gone[name] = shards.pop(name), replica.clock.now + SETTLE
                arriving.discard(name)
                leaving.discard(name)
            case "leave" if name in shards:
                replica.ownership.leave(name)
                leaving.add(name)
            case "stay":
                replica.ownership.stay(name)
                leaving.discard(name)
            case "use":
                usable = {shard for shard in range(COUNT) if number >> shard & 1}
                replica.held = usable
                replica.ownership.use(usable)
            case "wait":
                replica.clock.now += SETTLE
            case "welcome":
                replica.clock.now += SETTLE
                replica.ownership.welcome(read_since=replica.clock.now)
                arriving.clear()
            case "rebuild":
                replica.ownership.rebuild()
        ours = {one for one, shard in shards.items() if shard in usable}
        assert replica.own() == ours - arriving - leaving
        assert replica.bindable() == ours - arriving
        assert all(replica.ownership.shard(one) == shards.get(one, -1) for one in NAMES)


def test_the_label_of_a_shard_is_no_number_of_another_setting() -> None:
    replica = Replica(owns=set(range(COUNT)))
    replica.put(node("a", 0, labels={SHARD_LABEL: str(COUNT)}))
    assert 0 <= replica.ownership.shard("a") < COUNT and replica.own() == {"a"}
