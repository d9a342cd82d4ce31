"""A pod goes first to a node with room of its own, if it passes all filters there once that room is free."""

from __future__ import annotations

import pytest

from cluster.held_rooms import HeldRoom
from kube.decoding.decoding import Kind
from kube.objects.constraints import LabelSelector, Operator, Requirement
from kube.objects.objects import PodInfo, Taint
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView
from placement.index.index import INDEXED_KINDS, PlacementIndex
from placement.policies.policy import Policy
from scheduler.cycle.placing import Looked, UnitPlacer
from scorer.options import ScorerOptions
from scorer.scorer import Scorer
from scorer.scoring_policy import scoring_policy
from testing.objects import node_info, pod_info

OWNERS = LabelSelector((Requirement("app", Operator.IN, ("cart",)),))
TAINT = Taint("batch", "", "NoSchedule")


def own(name: str = "own", cpu: float = 3.0) -> PodInfo:
    return pod_info(name, labels={"app": "cart"}, requests={"cpu": cpu})


def stranger(name: str = "stranger", cpu: float = 3.0) -> PodInfo:
    return pod_info(name, requests={"cpu": cpu})


class World:
    """Nodes a to c of 4 cores; c is tainted."""

    def __init__(self, *pods: PodInfo) -> None:
        self.scorer = Scorer(ScorerOptions(), clock=lambda: 100.0)
        with self.scorer.tables.reading() as cluster:
            self.cluster = cluster
            self.view = ClusterView(cluster, PlacementIndex(cluster.state))
            self.scorer.tables.attach(INDEXED_KINDS, self.view.index)
        amounts = {"cpu": 4.0, "memory": 2.0**36, "pods": 110.0}
        nodes = [node_info(name, allocatable=amounts, taints=(TAINT,) if name == "c" else ()) for name in "abc"]
        self.scorer.tables.replace(Kind.NODES, nodes)
        self.scorer.tables.replace(Kind.PODS, pods)
        self.policy = Policy(scoring_policy(ScorerOptions()))

    def hold(self, node: str, *, cpu: float = 4.0, since: float = 10.0) -> None:
        stand_in = pod_info(f"reservation:{node}", uid=f"room-{node}", node=node, requests={"cpu": cpu}, stands_in=True)
        with self.scorer.tables.changing() as cluster:
            cluster.hold_room(HeldRoom(stand_in, OWNERS, since, 1e9))

    def placer(self) -> UnitPlacer:
        return UnitPlacer(self.view, self.cluster, self.scorer.tables.level()[0], until=200.0)

    def place(self, *pods: PodInfo) -> list[str]:
        with self.scorer.tables.changing():
            placed = self.placer().place(pods, standard_filters(), self.policy)
        return [self.view.state.names[row] for row in placed.rows]

    def look(self, pod: PodInfo) -> Looked:
        with self.scorer.tables.reading():
            return self.placer().look([pod], standard_filters(), self.policy)


@pytest.mark.parametrize("node", ["a", "b"])
def test_the_owners_pod_goes_to_its_room_and_a_stranger_elsewhere(node: str) -> None:
    world = World(own(), stranger())
    world.hold(node)
    assert world.place(stranger()) == ["b" if node == "a" else "a"]
    assert world.place(own()) == [node]
    assert world.cluster.rooms.taken_by("own") == f"room-{node}"


def test_the_oldest_room_where_it_fits_is_taken() -> None:
    world = World(own(), stranger("there"))
    world.hold("c", since=1)
    world.hold("b", since=2)
    world.hold("a", since=3)
    assert world.place(own()) == ["b"]
    assert world.cluster.rooms.taken_by("own") == "room-b"


def test_like_pods_take_one_room_each() -> None:
    pods = [own(f"own-{number}", cpu=2.0) for number in range(4)]
    world = World(*pods)
    world.hold("a", cpu=2.0, since=1)
    world.hold("b", cpu=2.0, since=2)
    nodes = world.place(*pods)
    assert nodes[:2] == ["a", "b"]
    assert len(nodes) == 4
    assert [world.cluster.rooms.taken_by(pod.uid) for pod in pods] == ["room-a", "room-b", None, None]


def test_a_batch_that_begins_with_a_stranger_leaves_the_owners_pod_its_room() -> None:
    """Pods of one batch may differ in labels."""
    strangers = [stranger(f"stranger-{number}", cpu=1.0) for number in range(3)]
    pods = [*strangers, own(cpu=1.0)]
    world = World(*pods)
    world.hold("a", cpu=4.0)
    assert world.place(*pods) == ["b", "b", "b", "a"]


def test_explaining_it_takes_nothing() -> None:
    world = World(own())
    world.hold("b")
    looked = world.look(own())
    assert [world.view.state.names[row] for row in looked.ranked()] == ["b"]
    assert looked.passed_over == {world.view.state.row_of["a"]: "Reservation"}
    assert world.cluster.rooms.taken_by("own") is None
    assert "room-b" in world.cluster.state.pods
