"""What single events do to the tables, by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster.tables.changes import PodChange, Seat, ServiceAdded
from cluster.tables.self_check import self_check
from cluster.tables.state import ClusterState
from forecast.service_key import Owner, ServiceKey
from kube.decoding.decoding import Kind
from kube.objects.counted_pods import WAITING_SECONDS
from kube.objects.objects import GATE, PodInfo, PodPhase, QosClass
from kube.objects.rollout import ROLLOUT_SECONDS
from tests.kube.api_objects import GIB, node, pod, pod_of, replica_set

T0 = 1_000_000.0
CART = ServiceKey("shop", "Deployment", "cart")
OLD = replica_set("cart-7d9f", deployment="cart", revision=1, desired_replicas=4, created=T0 - 9000)
NEW = replica_set("cart-8c5b", deployment="cart", revision=2, desired_replicas=4, created=T0)


@pytest.fixture
def state() -> ClusterState:
    state = ClusterState(now=T0)
    state.put_node(node("n1"))
    return state


def requested(state: ClusterState, name: str, kind: str) -> float:
    return float(state.requested[state.row_of[name], state.kinds[kind]])


def weights(state: ClusterState) -> dict[str, float]:
    return {state.pods[uid].name: seat.weight for uid, seat in state.seat_of.items()}


def test_a_pod_comes_moves_and_goes(state: ClusterState) -> None:
    state.put_node(node("n2"))
    waiting = pod("p", requests={"cpu": 0.3, "memory": GIB}, qos=QosClass.GUARANTEED)
    assert state.put_pod(waiting) == [ServiceAdded(0), PodChange(waiting, None, None)]
    bound = replace(waiting, node="n1")
    assert state.put_pod(bound) == [PodChange(bound, None, Seat(0, 0, 1.0))]
    assert state.requested[0].tolist() == [0.3, GIB, 1.0, 0.0]
    assert state.qos_pods[0].tolist() == [1, 0, 0]
    moved = replace(waiting, node="n2")
    assert state.put_pod(moved) == [PodChange(moved, Seat(0, 0, 1.0), Seat(1, 0, 1.0))]
    assert state.pod_count.tolist() == [0, 1]
    assert state.delete_pod(moved.uid) == [PodChange(moved, Seat(1, 0, 1.0), None)]
    assert not state.requested.any() and not state.requested_nonzero.any() and not state.qos_pods.any()
    assert (state.pods, state.seat_of, state.find_pod("shop", "p")) == ({}, {}, None)


def test_a_pod_is_held_by_our_gate_from_when_no_other_gate_holds_it(state: ClusterState) -> None:
    ours = replace(pod("ours", created=T0 - 40), gates=(GATE,))
    queued = replace(pod("queued", created=T0 - 3600), gates=("kueue.x-k8s.io/admission", GATE))
    free = pod("free", created=T0 - 99)
    for one in (ours, queued, free, replace(free, uid="uid-theirs", name="theirs", gates=("theirs",))):
        state.put_pod(one)
    state.put_pod(replace(ours, priority=7))  # another change of it
    assert state.gated_since(GATE) == [T0 - 40]
    state.expire(T0 + 5)
    state.put_pod(replace(queued, gates=(GATE,)))
    assert state.gated_since(GATE) == [T0 - 40, T0 + 5]
    state.put_pod(replace(ours, gates=()))
    state.delete_pod(queued.uid)
    assert state.gated_since(GATE) == []


@pytest.mark.parametrize(
    ("more", "weight", "replicas"),
    [
        ({}, 1.0, 1.0),
        ({"phase": PodPhase.PENDING}, 1.0, 1.0),
        ({"terminating": True}, 0.0, 0.0),
        ({"phase": PodPhase.SUCCEEDED}, None, 0.0),
        ({"phase": PodPhase.FAILED}, None, 0.0),
        ({"node": ""}, None, 0.0),  # created long ago: see below
        ({"node": "", "created": T0 - 10}, None, 1.0),
        ({"owner": Owner("DaemonSet", "agent")}, 0.0, 1.0),
        ({"owner": Owner("Node", "n1")}, 0.0, 1.0),
    ],
)
def test_which_pods_count(state: ClusterState, more: dict[str, object], weight: float | None, replicas: float) -> None:
    one: PodInfo = pod("p", **{"node": "n1", **more})  # type: ignore[arg-type]
    state.put_pod(one)
    seat = state.seat_of.get(one.uid)
    assert (seat.weight if seat else None) == weight
    assert requested(state, "n1", "cpu") == (0.5 if seat else 0.0)
    assert state.replicas(state.service_of[state.service_key(one)]) == replicas


def test_a_pod_that_finds_no_node_shares_no_load_for_ever(state: ClusterState) -> None:
    running, waiting = (
        pod("cart-1", owner=Owner("StatefulSet", "cart"), node="n1"),
        pod("cart-2", owner=Owner("StatefulSet", "cart"), node="", created=T0),
    )
    state.put_pod(running)
    state.put_pod(waiting)
    service = state.seat_of[running.uid].service
    assert state.replicas(service) == 2
    state.take_changed_services()
    assert state.expire(T0 + WAITING_SECONDS - 1) == []
    assert state.replicas(service) == 2
    state.expire(T0 + WAITING_SECONDS)
    assert state.replicas(service) == 1  # the one that runs carries it all
    assert state.take_changed_services() == {service}
    state.put_pod(replace(waiting, node="n1"))
    assert state.replicas(service) == 2
    assert self_check(state) == ()


def test_the_first_pod_of_a_release_does_not_carry_the_whole_service(state: ClusterState) -> None:
    """kube-scheduler may ask about it before the watch has shown the pod."""
    assert state.replicas_with(CART) == 1.0
    state.put_replica_set(NEW)
    assert state.replicas_with(CART) == 4.0
    state.put_pod(pod_of(NEW, "x", node="n1"))
    assert state.replicas_with(CART) == state.replicas(state.service_of[CART]) == 4.0


def test_a_rollout(state: ClusterState) -> None:
    for name in "ab":
        state.put_pod(pod_of(OLD, name, node="n1"))
    state.put_pod(pod_of(NEW, "c", node="n1"))
    state.put_pod(replace(pod_of(NEW, "d"), created=T0 + ROLLOUT_SECONDS))  # not bound yet
    state.replace(Kind.REPLICA_SETS, [OLD])
    cart = state.service_of[CART]
    assert state.replicas(cart) == 4.0  # as many as there are
    state.take_changed_services()

    state.put_replica_set(replace(NEW, desired_replicas=3))
    assert weights(state) == {"cart-7d9f-a": 0.0, "cart-7d9f-b": 0.0, "cart-8c5b-c": 1.0}
    assert state.replicas(cart) == 3.0  # as many as there will be
    assert state.take_changed_services() == {cart}
    state.put_replica_set(replace(NEW, desired_replicas=None))
    assert state.replicas(cart) == 2.0  # those that stay
    assert requested(state, "n1", "cpu") == 1.5

    assert state.expire(T0 + ROLLOUT_SECONDS - 1) == []
    state.take_changed_services()
    changes = state.expire(T0 + ROLLOUT_SECONDS)
    assert [(c.pod.name, c.after and c.after.weight) for c in changes if isinstance(c, PodChange)] == [
        ("cart-7d9f-a", 1.0),
        ("cart-7d9f-b", 1.0),
    ]
    assert state.replicas(cart) == 4.0 and state.take_changed_services() == {cart}
    state.expire(T0)  # the clock was wrong
    assert weights(state)["cart-7d9f-a"] == 0.0
    state.delete_replica_set(NEW.uid)
    assert set(weights(state).values()) == {1.0}


def test_a_new_pod_takes_the_place_of_the_old_and_requests_add_up(state: ClusterState) -> None:
    old, new = pod("db-0", uid="old", node="n1", created=T0), pod("db-0", uid="new", node="n1", created=T0 + 1)
    state.put_pod(old)
    state.put_pod(new)  # whose predecessor's end nobody saw
    assert (state.pod_count[0], state.find_pod("shop", "db-0")) == (1, new)
    assert state.delete_pod("old") == []
    assert state.put_pod(old) == []  # old news
    assert (state.pod_count[0], state.find_pod("shop", "db-0")) == (1, new)
    state.delete_pod("new")
    assert state.pod_count[0] == 0
    for i in range(1000):
        state.put_pod(pod(f"p{i}", node="n1", requests={"cpu": 0.1, "memory": 0.1}))
    assert requested(state, "n1", "cpu") == 100.0
    assert requested(state, "n1", "memory") == 1000.0  # kube-scheduler rounds each up to whole bytes
    for i in range(999):
        state.delete_pod(f"uid-p{i}")
    assert requested(state, "n1", "cpu") == 0.1


def test_all_seats_as_arrays(state: ClusterState) -> None:
    state.put_pod(pod("a", node="n1"))
    state.put_pod(pod("b", node="n2", terminating=True))
    seats = state.seats()
    assert sorted(zip(seats.node, seats.service, seats.weight, strict=True)) == [(0, 0, 1.0), (1, 1, 0.0)]
    assert len(ClusterState().seats().node) == 0


def test_resources_that_only_pods_name_make_no_columns_and_count_once_a_node_names_them(state: ClusterState) -> None:
    """Anybody may name a thousand of them, and each column has a place for every node."""
    before = dict(state.kinds)
    many = pod("p", node="n1", requests={f"example.com/r{at}": float(at % 2) for at in range(1000)} | {"cpu": 1.0})
    like = [pod(f"q{at}", node="n1", requests={"example.com/r1": 2.0}) for at in range(2)]
    for one in (many, *like):
        state.put_pod(one)
    assert state.kinds == before and state.requested[0, state.kinds["cpu"]] == 1.0
    extended: dict[str, float] = {"example.com/r1": 8.0}
    state.put_node(node("n2", cpu=4.0, memory=GIB, **extended))
    assert requested(state, "n1", "example.com/r1") == 5.0 and requested(state, "n2", "example.com/r1") == 0.0
    for one in (many, *like):
        state.delete_pod(one.uid)
    assert not state.requested.any()
    assert not self_check(state)
