"""Room for pods still to come is in all tables until one of its pods takes it, and is taken once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cluster.assuming_cluster import AssumingCluster
from cluster.held_rooms import HeldRoom
from cluster.tables.self_check import self_check
from kube.decoding.decoding import Kind
from kube.objects.constraints import LabelSelector, Operator, Requirement
from kube.objects.objects import RESERVATION, PodInfo
from scorer.options import ScorerOptions
from testing.objects import node_info, pod_info
from tests.scorer.live_cluster import pod_of
from tests.scorer.scorer_at import LiveScorer, shares

NODES = ("a", "b")
OWNERS = LabelSelector((Requirement("app", Operator.IN, ("cart",)),))


def room(uid: str = "r", node: str = "a", *, cpu: float = 2.0, since: float = 10.0, until: float = 1000.0) -> HeldRoom:
    stand_in = pod_info(f"reservation:{uid}", uid=uid, node=node, requests={"cpu": cpu}, stands_in=True)
    return HeldRoom(stand_in, OWNERS, since, until)


def owner(
    uid: str = "p", *, node: str = "", cpu: float = 2.0, scheduled: float | None = None, **rest: object
) -> PodInfo:
    labels = {"app": "cart"}
    return pod_info(uid, node=node, labels=labels, requests={"cpu": cpu}, scheduled=scheduled, **rest)


def cluster(*pods: PodInfo, now: float = 20.0) -> AssumingCluster:
    made = AssumingCluster(ScorerOptions(), now=now)
    for name in NODES:
        made.put(node_info(name, allocatable={"cpu": 8.0, "pods": 110.0}))
    made.replace_pods(pods)
    return made


def requested(of: AssumingCluster) -> list[float]:
    column = of.state.kinds["cpu"]
    return [float(of.state.requested[of.state.row_of[name], column]) for name in NODES]


@pytest.mark.parametrize("end", ["forgotten", "overdue", "deleted", "not listed", "bound elsewhere"])
def test_the_room_returns_if_the_pod_is_not_bound_there(end: str) -> None:
    tested = cluster(owner())
    tested.hold_room(room())
    tested.assume(owner(), "a", 100)
    match end:
        case "forgotten":
            tested.forget("p")
        case "overdue":
            tested.tick(100)
        case "deleted":
            tested.delete_pod("p")
        case "not listed":
            tested.replace_pods(())
        case _:
            tested.put_pod(owner(node="b", scheduled=30))
    assert requested(tested) == [2, 2 if end == "bound elsewhere" else 0]
    assert not self_check(tested.state)


@pytest.mark.parametrize(
    "bound",
    [
        owner(node="a", scheduled=9),
        owner(node="a"),
        owner(node="b", scheduled=30),
        owner(node="a", scheduled=30, annotations={RESERVATION: "another"}),
        replace(owner(node="a", scheduled=30, annotations={RESERVATION: "r"}), namespace="bank"),
        replace(owner(node="a", scheduled=30, annotations={RESERVATION: "r"}), labels={"app": "till"}),
    ],
    ids=["there before", "unknown since when", "elsewhere", "names another", "namespace", "labels"],
)
def test_other_pods_take_nothing(bound: PodInfo) -> None:
    tested = cluster()
    tested.hold_room(room())
    tested.put_pod(bound)
    tested.replace_pods([bound])
    assert tested.rooms.taker("r") is None
    assert sum(requested(tested)) == 4


def test_a_room_returns_from_a_pod_elsewhere_and_is_that_of_the_pod_that_names_it() -> None:
    tested = cluster(owner())
    tested.hold_room(room())
    tested.assume(owner(), "a", 100)
    tested.assume(owner(), "b", 100)
    assert requested(tested) == [2, 2]
    assert tested.rooms.taken_by("p") is None
    tested = cluster(
        owner("early", node="a", scheduled=11), owner("named", node="a", scheduled=30, annotations={RESERVATION: "r"})
    )
    tested.replace_rooms([room()], [])
    assert tested.rooms.taken_by("named") == "r"
    assert tested.rooms.taken_by("early") is None


def test_lists_keep_stand_ins_and_drop_reservations_that_are_not_in_them() -> None:
    tested = cluster()
    tested.hold_room(room())
    tested.put_stand_in(replace(room("w").stand_in, node=""))
    tested.replace_pods(())
    assert requested(tested) == [2, 0]
    assert "w" in tested.state.pods
    tested.assume(tested.state.pods["w"], "b", 100)
    tested.replace_pods(())
    assert requested(tested) == [2, 2]
    tested.hold_room(room("w", "b"))
    assert "w" not in tested.assumed
    assert requested(tested) == [2, 2]
    tested = cluster()
    tested.replace_rooms([room()], [replace(room("w").stand_in, node="")])
    tested.replace_rooms([], [])
    assert requested(tested) == [0, 0]
    assert not tested.state.pods


def test_pods_take_each_room_once_in_the_same_step() -> None:
    tested = cluster(owner())
    seen = list[float]()
    tested.hold_room(room())
    tested.listeners.append(lambda changes: seen.append(requested(tested)[0]))
    tested.assume(owner(), "a", 100)
    assert requested(tested) == [2, 0]
    assert max(seen) == 2, "the room was counted twice"
    assert tested.rooms.taken_by("p") == "r"
    pods = [owner(f"p{number}", cpu=1.0) for number in range(4)]
    tested = cluster(*pods)
    tested.replace_rooms([room("r1", cpu=1.0), room("r2", cpu=1.0)], [])
    row = tested.state.row_of["a"]
    tested.assume_all(pods, [row] * 4, 100)
    assert requested(tested) == [4, 0]
    assert {tested.rooms.taken_by(pod.uid) for pod in pods} == {"r1", "r2", None}


def test_room_is_in_the_predicted_load_and_in_what_is_free() -> None:
    tested, other = LiveScorer(), LiveScorer()
    held = HeldRoom(
        replace(pod_of(3, "held", cpu=2.0), node="node-1", name="reservation:held", stands_in=True), OWNERS, 0, 1e12
    )
    with tested.scorer.tables.changing() as held_in:
        held_in.hold_room(held)
    other.put(replace(pod_of(3, "held", cpu=2.0), node="node-1"))
    np.testing.assert_allclose(shares(tested), shares(other))
    assert shares(tested).tolist() != shares(LiveScorer()).tolist()
    tested.scorer.tables.replace(Kind.PODS, [])
    np.testing.assert_allclose(shares(tested), shares(other))
    assert tested.scorer.self_check().sound


@dataclass
class Known:
    """What the API server has of a room: the plain model."""

    room: HeldRoom
    taken_by: str = ""


@dataclass
class World:
    now: float = 20.0
    pods: dict[str, PodInfo] = field(default_factory=dict)
    rooms: dict[str, Known] = field(default_factory=dict)


class Histories(RuleBasedStateMachine):
    """Reservations, owners' pods, strangers, expiries, failed bindings and restarts, against a plain model."""

    @initialize()
    def start(self) -> None:
        self.world, self.number = World(), 0
        self.served: set[str] = set()  # pods of another scheduler that have had a room
        self.assumed: dict[str, tuple[str, str]] = {}  # node and room, by UID of the pod
        self.tested = cluster()

    def name(self, prefix: str) -> str:
        self.number += 1
        return f"{prefix}{self.number}"

    @rule(node=st.sampled_from(NODES), cpu=st.integers(1, 3), lasts=st.integers(1, 30))
    def reserve(self, node: str, cpu: int, lasts: int) -> None:
        uid, now = self.name("r"), self.world.now
        self.world.rooms[uid] = Known(room(uid, node, cpu=float(cpu), since=now, until=now + lasts))
        self.tested.hold_room(self.world.rooms[uid].room)
        self.others_take()  # bound in the same second

    @rule(own=st.booleans(), cpu=st.integers(1, 3))
    def create(self, own: bool, cpu: int) -> None:
        pod = owner(self.name("p"), cpu=float(cpu), created=self.world.now)
        self.world.pods[pod.uid] = pod if own else replace(pod, labels={"app": "till"})
        self.tested.put_pod(self.world.pods[pod.uid])

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), node=st.sampled_from(NODES))
    def assume(self, data: st.DataObject, node: str) -> None:
        pod = self.world.pods[data.draw(st.sampled_from(self.waiting()))]
        self.assumed[pod.uid] = (node, self.expected(pod, node))
        self.tested.assume(pod, node, 1e9)

    @precondition(lambda self: self.assumed)
    @rule(data=st.data(), outcome=st.sampled_from(["bound", "failed", "deleted"]))
    def ends(self, data: st.DataObject, outcome: str) -> None:
        uid = data.draw(st.sampled_from(sorted(self.assumed)))
        node, taken = self.assumed.pop(uid)
        if outcome == "bound":
            annotations = {RESERVATION: taken} if taken else {}
            bound = replace(self.world.pods[uid], node=node, annotations=annotations, scheduled=self.world.now)
            self.world.pods[uid] = bound
            if taken and taken in self.world.rooms:
                self.world.rooms[taken].taken_by = uid
            self.tested.put_pod(bound)
        elif outcome == "failed":
            self.tested.forget(uid)
        else:
            del self.world.pods[uid]
            self.tested.delete_pod(uid)
        self.others_take()

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), node=st.sampled_from(NODES))
    def bound_by_another_scheduler(self, data: st.DataObject, node: str) -> None:
        uid = data.draw(st.sampled_from(self.waiting()))
        self.world.pods[uid] = replace(self.world.pods[uid], node=node, scheduled=self.world.now)
        self.tested.put_pod(self.world.pods[uid])
        self.others_take()

    @precondition(lambda self: self.world.rooms)
    @rule(data=st.data())
    def delete_reservation(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.world.rooms)))
        del self.world.rooms[uid]
        self.tested.drop_room(uid)

    @rule(seconds=st.integers(1, 20))
    def time_passes(self, seconds: int) -> None:
        self.world.now += seconds
        self.tested.tick(self.world.now)

    @rule(what=st.sampled_from(["pods", "rooms"]))
    def list_again(self, what: str) -> None:
        if what == "pods":
            self.tested.replace_pods(list(self.world.pods.values()))
        else:
            self.tested.replace_rooms([known.room for known in self.world.rooms.values()], [])

    @rule(first=st.sampled_from(["pods", "rooms"]))
    def killed(self, first: str) -> None:
        """What was only assumed is lost, whatever was bound is read again."""
        self.assumed.clear()
        self.served.clear()
        for known in self.world.rooms.values():
            if known.taken_by and not self.is_named(known.taken_by):
                known.taken_by = ""
        self.others_take()
        self.tested = cluster(now=self.world.now)
        for what in (first, "rooms" if first == "pods" else "pods"):
            self.list_again(what)

    @invariant()
    def room_is_held_exactly_while_it_is_available(self) -> None:
        per_node = dict.fromkeys(NODES, 0.0)
        for uid, pod in self.world.pods.items():
            node = self.assumed[uid][0] if uid in self.assumed else pod.node
            if node:
                per_node[node] += pod.requests["cpu"]
        in_flight = {taken for _, taken in self.assumed.values() if taken}
        for uid, known in self.world.rooms.items():
            if not known.taken_by and uid not in in_flight and self.world.now < known.room.until:
                per_node[known.room.stand_in.node] += known.room.stand_in.requests["cpu"]
        assert requested(self.tested) == list(per_node.values())

    @invariant()
    def each_is_taken_by_one_pod_at_most(self) -> None:
        takers = [taker.uid for uid in self.world.rooms if (taker := self.tested.rooms.taker(uid)) is not None]
        assert len(takers) == len(set(takers))

    @invariant()
    def the_tables_are_sound(self) -> None:
        assert not self_check(self.tested.state)

    def waiting(self) -> Sequence[str]:
        return sorted(uid for uid, pod in self.world.pods.items() if not pod.node and uid not in self.assumed)

    def is_named(self, uid: str) -> bool:
        """Whether a bound pod says which room it took; one that is gone says nothing, and its room is as it was."""
        return uid not in self.world.pods or RESERVATION in self.world.pods[uid].annotations

    def others_take(self) -> None:
        """Bound pods that name no room, and have none, take what is free where they are: the one bound first."""
        having = {known.taken_by for known in self.world.rooms.values()} | self.served
        bound = [pod for pod in self.world.pods.values() if pod.node and pod.uid not in having]
        for pod in sorted(bound, key=lambda one: (one.scheduled or 0.0, one.uid)):
            if not self.is_named(pod.uid) and (uid := self.expected(pod, pod.node, since=pod.scheduled)):
                self.world.rooms[uid].taken_by = pod.uid
                self.served.add(pod.uid)

    def expected(self, pod: PodInfo, node: str, since: float | None = None) -> str:
        """The oldest room there that is free."""
        in_flight = {taken for _, taken in self.assumed.values()}
        free = [
            (known.room.since, uid)
            for uid, known in self.world.rooms.items()
            if known.room.is_for(pod)
            and known.room.stand_in.node == node
            and not known.taken_by
            and uid not in in_flight
            and (self.world.now < known.room.until if since is None else known.room.since <= since < known.room.until)
        ]
        return min(free)[1] if free else ""


TestHistories = Histories.TestCase
TestHistories.settings = settings(deadline=None)
