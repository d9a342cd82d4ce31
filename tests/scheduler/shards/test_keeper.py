"""Replicas that share shards while they die, stand still, lag, are cut off and come back: never two for one node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, cast

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from kubernetes.client import ApiClient

from cluster.held_rooms import HeldRoom
from kube.leader_election.lease_options import LeaseOptions
from kube.leader_election.lease_set import LeaseSet
from kube.objects.constraints import LabelSelector, Operator, Requirement
from kube.objects.objects import PodInfo, PodPhase
from scheduler.loop_settings import ShardOptions
from scheduler.shards.alone_leader import AloneLeader
from scheduler.shards.assignment import Dispatcher
from scheduler.shards.keeper import ShardKeeper
from scheduler.shards.node_moves import NodeMoves
from scheduler.shards.node_shards import SHARD_LABEL
from scheduler.shards.shard_leases import LEASES_LABEL, shard_names
from testing.constants import with_constants
from tests.scheduler.shards.fake_api_server import ApiServer, Client, Fate
from tests.scheduler.shards.shard_world import COUNT, Replica, node, pod

LEASE: Final = LeaseOptions(duration=10, renew_deadline=7, retry_period=1)
SHARDS: Final = with_constants(ShardOptions(), enabled=True, count=COUNT, balance_every=1e6, moves=3, loan=10)
NAMES: Final = shard_names(LEASE, SHARDS)
PER_NODE: Final = 3
"""Pods that fit on a node."""

_SLOW_SECONDS: Final = 2.5
"""Until a binding arrives; more than `duration` - `renew_deadline` no election by Leases bears."""


class KeepingReplica(Replica):
    """A replica with its keeper. `until` has the moment when each of its troubles ends, by name."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__()
        self.world, self.identity, self.number = world, f"replica-{number}", number
        self.client = Client(world.server, self._fate, world.check)
        self.until: dict[str, float] = {}
        self.seen = self.listed_at = 0
        self.flights: list[tuple[float, PodInfo, str]] = []
        self.dispatcher, self.n_used, self.leads_instead = Dispatcher(()), 0, False
        self._lists: list[list[bool]] = []
        self._listed: dict[str, int] = {}
        api = cast(ApiClient, self.client)
        self.leases = LeaseSet(
            api,
            LEASE,
            label=(LEASES_LABEL, LEASE.name),
            identity=self.identity,
            clock=self.clock,
            wall=lambda: 1.7e9 + world.now + 3600.0 * number,
        )
        self.ownership._may_use = self.may_use
        self.ownership.use(())
        self.moves = NodeMoves(
            api,
            self.ownership,
            locked=self.locked,
            may_act=self.may_use,
            loan=SHARDS.loan,
            most=SHARDS.moves,
            clock=self.clock,
            wall=lambda: 1.7e9 + world.now,
        )
        self.leader = AloneLeader(lambda: self.leads_instead or world.leader() is self, clock=self.clock)
        self.keeper = ShardKeeper(
            self.leases,
            LEASE,
            world.options,
            self.ownership,
            self.moves,
            self.leader,
            locked=self.locked,
            read_again=self._read_again,
            unhealthy=lambda: "the loop hangs" if self.has("hangs") else "",
            leads=lambda: self.leads_instead or world.leader() is self,
            is_needed=lambda: False,
            lists=self,
            version=lambda: self.seen + self.listed_at,
            event_version=lambda: self.seen,
            use=self._use,
            clock=self.clock,
        )
        self.set_clock()
        self._list()

    def may_use(self, shard: int) -> bool:
        return self.leases.holds(NAMES[shard])

    def has(self, trouble: str) -> bool:
        return self.until.get(trouble, 0.0) > self.world.now

    def set_clock(self) -> None:
        self.clock.now = self.world.now + 1000.0 * self.number

    def second(self) -> None:
        """What its threads do in a second."""
        if not self.has("lag"):
            self._follow()
        self.keeper.renew()
        self.keeper.step()
        if not self.has("hangs"):
            self._place()

    def _fate(self) -> Fate:
        return next((fate for fate in Fate if self.has(fate.value)), Fate.ANSWERED)

    def _use(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher
        self.n_used += 1

    # The watch

    def _follow(self) -> None:
        for number, item in enumerate(self.world.server.log[self.seen :], self.seen):
            if isinstance(item, str):
                self.cluster.delete_pod(item)
            elif not isinstance(item, PodInfo) or number >= self._listed.get(item.uid, 0):
                self.cluster.put(item)
        self.seen = len(self.world.server.log)
        if self._lists:
            self._list()
            for one in self._lists:
                one[0] = True
            self._lists.clear()

    def _list(self) -> None:
        for one in self.world.server.nodes.values():
            self.cluster.put(one)
        self.cluster.replace_pods(list(self.world.server.pods.values()))
        self.seen = len(self.world.server.log)

    def _read_again(self) -> Callable[[], bool]:
        """At once, unless the watch lags."""
        done = [not self.has("lag")]
        if done[0]:
            self._follow()
            self._list()
        else:
            self._lists.append(done)
        return lambda: done[0]

    def read_nodes(self, nodes: Sequence[str]) -> list[str]:
        """What the watch has still to say about these pods is older."""
        for one in self.world.server.pods.values():
            if one.node in nodes and one.uid not in self.cluster.state.seat_of:
                self._listed[one.uid] = len(self.world.server.log)
                self.cluster.put(one)
        return list(nodes)

    def read_waiting(self) -> bool:
        """They place pods that they make themselves."""
        return True

    # Placing

    def _place(self) -> None:
        state = self.cluster.state
        pods = Counter(state.names[seat.node] for seat in state.seat_of.values())
        has_room = [name for name in self.own() if pods[name] < PER_NODE]
        for name in sorted(has_room, key=lambda name: (-pods[name], name))[:3]:
            one = self.world.new_pod()
            self.assume(one, name)
            self._send(one, name)

    def _send(self, one: PodInfo, name: str) -> None:
        """The guard is asked right before the request, which may take a while."""
        if self.ownership.why_not(name):
            self.cluster.delete_pod(one.uid)
            self.world.server.delete_pod(one.uid)
            return
        self.flights.append((self.world.now + (_SLOW_SECONDS if self.has("slow") else 0.0), one, name))


class World:
    """`replicas` are those that live."""

    def __init__(self, n_replicas: int, n_nodes: int = 6, options: ShardOptions = SHARDS) -> None:
        self.options = options
        self.now, self.server, self.replicas = 100.0, ApiServer(), list[KeepingReplica]()
        self._n_started = self._n_pods = self.bound = 0
        self._orphans: list[tuple[float, PodInfo, str]] = []
        for i in range(n_nodes):
            self.server.put_node(replace(node(f"node-{i}", 0), labels={}))
        for _ in range(n_replicas):
            self.start()

    def start(self) -> None:
        self.replicas.append(KeepingReplica(self, self._n_started))
        self._n_started += 1

    def kill(self, replica: KeepingReplica) -> None:
        """What it sent last still arrives."""
        self.replicas.remove(replica)
        self._orphans += replica.flights
        replica.client.arrive()

    def stop(self, replica: KeepingReplica) -> None:
        """It ends in order: nothing is bound any more."""
        self._land(replica.flights, 1e12)
        replica.keeper.stop()
        self.replicas.remove(replica)

    def relabel(self, name: str, shard: int) -> None:
        """A client that is none of us changes the label."""
        known = self.server.nodes[name]
        self.server.put_node(replace(known, labels={**known.labels, SHARD_LABEL: str(shard)}))

    def new_pod(self) -> PodInfo:
        """Return a pod that waits, which the API server knows."""
        self._n_pods += 1
        made = pod(f"pod-{self._n_pods}")
        self.server.put_pod(made)
        return made

    def leader(self) -> KeepingReplica | None:
        """One that owns nodes."""
        return next((one for one in self.replicas if one.ownership.owns_any()), None)

    def seconds(self, n: int) -> None:
        for _ in range(n):
            self._second()

    def check(self) -> None:
        """At most one replica may act for each shard, and no node has too many pods."""
        for shard in range(COUNT):
            acting = [one.identity for one in self.replicas if one.may_use(shard)]
            assert len(acting) <= 1, f"{acting} act for shard {shard}"
        pods = Counter(one.node for one in self.server.pods.values() if one.node)
        assert max(pods.values(), default=0) <= PER_NODE, pods

    def owners(self) -> dict[str, list[str]]:
        """Of each node: replicas that place there."""
        return {
            name: [one.identity for one in self.replicas if name in one.own() and name in one.bindable()]
            for name in self.server.nodes
        }

    def _second(self) -> None:
        for part in range(2):
            self.now += 0.5
            for one in self.replicas:
                one.set_clock()
            self.check()
            self._land(self._orphans, self.now)
            for one in list(self.replicas):
                self._land(one.flights, self.now)
                if one.client.late and not one.has(Fate.LATE.value):
                    one.client.arrive()
                if one.number % 2 == part and not one.has("pause"):
                    one.second()
            self.check()
        bound = [uid for uid, one in self.server.pods.items() if one.node]
        for uid in bound[: len(bound) // 6]:
            self.server.delete_pod(uid)

    def _land(self, flights: list[tuple[float, PodInfo, str]], until: float) -> None:
        for flight in [one for one in flights if one[0] <= until]:
            flights.remove(flight)
            self.server.put_pod(replace(flight[1], node=flight[2], phase=PodPhase.RUNNING))
            self.bound += 1
            self.check()


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


@settings(max_examples=max(settings().max_examples // 3, 5))  # each is minutes of three replicas
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
    leader.leader.decides_alone()
    world.seconds(3)
    assert leader.leader.decides_alone()
    leader.clock.now += 1000.0
    assert not leader.leader.follows_all()
    leader.clock.now -= 1000.0
    assert not leader.leader.decides_alone()
    world.seconds(2)
    assert leader.leader.decides_alone()


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
