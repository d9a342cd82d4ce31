"""The queue hears of pods of ours that wait, and of everything that may help them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from placement.filters.filter import ClusterView
from placement.index.index import INDEXED_KINDS, PlacementIndex
from scheduler.profile import PodsToPlace
from scheduler.queue_events import ClusterFollower
from scorer.scorer import Scorer
from tests.placement.small_cluster import node_of
from tests.scheduler.gangs.made_up import member

WAITING = member("a", of="")
FOREIGN = member("f", of="", scheduler_name="another")


class World:
    """Two nodes, and who listens in place of the queue: what it was told, in order."""

    def __init__(self, *pods: PodInfo, to_place: PodsToPlace | None = None) -> None:
        self.told: list[tuple[str, str]] = []
        self.events: list[ClusterEvent] = []
        self.scorer = Scorer(clock=lambda: 0.0)
        with self.scorer.tables.reading() as cluster:
            self.cluster = cluster
            view = ClusterView(cluster, PlacementIndex(cluster.state))
            self.scorer.tables.attach((), view.index)
            to_place = to_place or PodsToPlace(frozenset({"forecast-scheduler"}))
            self.follower = ClusterFollower(cluster, view.index, self, to_place)  # type: ignore[arg-type]
            self.scorer.tables.attach(INDEXED_KINDS, self.follower)
        self.scorer.tables.replace(Kind.NODES, [node_of("node-0"), node_of("node-1")])
        self.scorer.tables.replace(Kind.PODS, list(pods))
        self.told.clear()
        self.events.clear()

    def put(self, pod: PodInfo) -> None:
        self.told.append(("put", pod.uid))

    def remove(self, uid: str) -> None:
        self.told.append(("remove", uid))

    def happened(self, event: ClusterEvent) -> None:
        self.events.append(event)

    def watch(self, *pods: PodInfo) -> None:
        for pod in pods:
            self.scorer.tables.put(Kind.PODS, pod)

    def kinds(self) -> list[EventKind]:
        heard = [event.kind for event in self.events]
        self.events.clear()
        return heard


def test_of_pods_that_are_advised_on_those_with_the_gate_are_put_and_removed_when_it_is_gone() -> None:
    gate = "forecast-scheduler.io/advice"
    world = World(to_place=PodsToPlace(frozenset({"forecast-scheduler"}), gate=gate))
    world.watch(WAITING, replace(WAITING, gates=(gate,)))
    assert world.told == [("remove", "a"), ("put", "a")]
    world.watch(WAITING)
    assert world.told[2:] == [("remove", "a")]
    with world.scorer.tables.reading() as cluster:
        world.scorer.tables.put(Kind.PODS, replace(WAITING, gates=(gate,)))
        cluster.assume(WAITING, "node-0", 60.0)
    world.told.clear()
    world.watch(WAITING)
    assert world.told == [], "its gate is gone since its advice was written: it is assumed still"


def test_pods_that_come_change_and_leave_are_told_of() -> None:
    world = World()
    seated = replace(FOREIGN, node="node-1")
    world.watch(seated)
    assert world.kinds() == [EventKind.POD_BOUND]
    world.watch(replace(seated, labels={"tier": "new"}))
    assert world.kinds() == [EventKind.POD_CHANGED]
    world.watch(replace(seated, labels={"tier": "new"}, priority=7))
    assert world.kinds() == []
    world.scorer.tables.delete(Kind.PODS, seated)
    (left,) = world.events
    assert left.kind is EventKind.POD_LEFT
    assert left.pod is not None and (left.pod.node, left.pod.labels) == ("node-1", {"tier": "new"})
    assert world.told == []


def test_nodes_are_told_of_with_what_they_were() -> None:
    world = World()
    cordoned, new = replace(node_of("node-1"), unschedulable=True), node_of("node-2")
    world.scorer.tables.put(Kind.NODES, cordoned)
    world.scorer.tables.put(Kind.NODES, new)
    changed, added = world.events
    assert changed == ClusterEvent(EventKind.NODE_CHANGED, node=cordoned, before=node_of("node-1"))
    assert added == ClusterEvent(EventKind.NODE_ADDED, node=new, before=None)
    world.events.clear()
    world.scorer.tables.delete(Kind.NODES, new)
    assert world.kinds() == []
    world.scorer.tables.put(Kind.NODES, node_of("node-3"))  # in its row
    assert [(event.kind, event.before) for event in world.events] == [(EventKind.NODE_ADDED, None)]


def test_nothing_is_told_while_trying_and_who_was_placed_is_told_of_afterwards() -> None:
    world = World(WAITING, member("b", of=""))
    with world.scorer.tables.reading() as cluster:
        with world.follower.trying():
            cluster.assume(WAITING, "node-0", 60.0)
            cluster.assume(member("b", of=""), "node-0", 60.0)
            cluster.forget("b")
        assert (world.told, world.events) == ([], [])
        world.follower.placed([WAITING, member("b", of="")])
    (bound,) = world.events
    assert bound.kind is EventKind.POD_BOUND and bound.pod is not None
    assert (bound.pod.uid, bound.pod.node) == ("a", "node-0")
    world.events.clear()
    with world.scorer.tables.reading() as cluster:
        cluster.forget("a")
    assert world.told == [("put", "a")]
    assert world.kinds() == [EventKind.POD_LEFT], "its room is free again"


def test_what_is_told_again_after_a_try_that_raised() -> None:
    world = World()
    with pytest.raises(RuntimeError), world.follower.trying():
        raise RuntimeError("odd")
    world.watch(WAITING)
    assert world.told == [("put", "a")]


def test_after_tables_were_made_anew_all_that_wait_are_put() -> None:
    world = World(WAITING, FOREIGN, member("s", of="", node="node-0"))
    world.follower.rebuild()
    assert world.told == [("put", "a")]
    assert world.kinds() == [EventKind.TIMEOUT]
