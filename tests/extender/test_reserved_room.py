"""kube-scheduler knows nothing of Reservations: the extender keeps strangers out, and lets the owner's pods in."""

from __future__ import annotations

from dataclasses import replace

from cluster.held_rooms import HeldRoom
from kube.decoding.decoding import Kind
from kube.objects.constraints import LabelSelector, Operator, Requirement
from kube.objects.objects import NodeInfo, PodInfo
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.node_order import ORDER_POINTS
from tests.extender.test_extender import LOADED, NODES, extender_of
from tests.scorer.live_cluster import node, pod_of
from tests.scorer.scorer_at import LiveScorer

OWNERS = LabelSelector((Requirement("app", Operator.IN, ("cart",)),))
STRANGER = pod_of(1, "stranger", cpu=20.0)
OWN = replace(pod_of(0, "own", cpu=20.0), labels={"app": "cart"})


def held(on: str = "node-0", cpu: float = 30.0) -> HeldRoom:
    stand_in = replace(pod_of(2, "room", cpu=cpu), node=on, stands_in=True, name="reservation:room")
    return HeldRoom(stand_in, OWNERS, since=0.0, until=1e12)


def reserving(*pods: PodInfo) -> LiveScorer:
    tested = LiveScorer(pods=pods)
    for name in NODES:
        sized: NodeInfo = replace(node(name), allocatable={"cpu": 40.0, "memory": 2.0**40, "pods": 110.0})
        tested.scorer.tables.put(Kind.NODES, sized)
    return tested


def hold(tested: LiveScorer, room: HeldRoom) -> None:
    with tested.scorer.tables.changing() as cluster:
        cluster.hold_room(room)


def test_strangers_that_do_not_fit_beside_the_room_are_rejected_without_any_filter_of_the_policy() -> None:
    tested = reserving()
    made, _ = extender_of(tested)
    assert made.filter(STRANGER, NODES).nodes == NODES
    hold(tested, held())
    found = made.filter(STRANGER, NODES)
    assert found.nodes == NODES[1:]
    assert found.failed == {"node-0": "node(s) reserve their room for other pods"}
    assert made.filter(pod_of(1, "small", cpu=5.0), NODES).nodes == NODES


def test_a_pod_of_its_owners_is_let_in_and_prefers_that_node() -> None:
    tested = reserving(*LOADED)
    made, _ = extender_of(tested, filters=(NodeResourcesFit(),))
    hold(tested, held(cpu=9.0))
    own = replace(OWN, requests={"cpu": 8.0})
    assert made.filter(replace(own, labels={}), NODES).nodes == NODES[1:]
    assert made.filter(own, NODES).nodes == NODES
    assert made.prioritize(own, NODES)["node-0"] > ORDER_POINTS / 2
    assert made.prioritize(STRANGER, NODES).get("node-0", 0) < ORDER_POINTS / 2


def test_one_that_fits_nowhere_even_with_the_room_free_is_rejected() -> None:
    tested = reserving()
    made, _ = extender_of(tested)
    hold(tested, held())
    assert made.filter(replace(OWN, requests={"cpu": 41.0}), NODES).nodes == NODES[1:], (
        "kube-scheduler rejects the rest"
    )


def test_the_node_that_will_probably_be_taken_is_charged_once() -> None:
    tested = reserving()
    made, _ = extender_of(tested, charge=10)
    hold(tested, held(cpu=20.0))
    made.prioritize(OWN, NODES)
    with tested.scorer.tables.reading() as cluster:
        row = cluster.state.row_of["node-0"]
        assert cluster.state.requested[row, 0] == 20
        assert cluster.rooms.taken_by(OWN.uid) == held().uid
    made.filter(OWN, NODES)  # asked about again, it was not bound: the room is held as before
    with tested.scorer.tables.reading() as cluster:
        assert cluster.rooms.taken_by(OWN.uid) is None
        assert cluster.state.requested[row, 0] == 20
