"""What single events do to the tables, by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forecast.service_key import Owner, ServiceKey
from kube.decoding.decoding import Kind
from kube.objects.objects import Phase, PodInfo, QosClass
from kube.objects.pod_accounting import WAITING_SECONDS
from kube.objects.rollout import ROLLOUT_SECONDS
from kube.tables.changes import NodeAdded, NodeChanged, NodeRemoved, PodChange, Seat, ServiceAdded
from kube.tables.self_check import self_check
from kube.tables.state import ClusterState
from tests.kube.api_objects import GIB, job, node, pod, pod_of, replica_set

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


def test_what_a_listener_must_know_without_a_new_seat_is_said_too(state: ClusterState) -> None:
    state.put_pod(pod("p", node="n1"))
    started = replace(pod("p", node="n1"), started=T0)
    assert state.put_pod(started) == [PodChange(started, Seat(0, 0, 1.0), Seat(0, 0, 1.0))]
    resized = replace(started, requests={"cpu": 2.0}, nonzero_requests=(2.0, 0.0))
    assert state.put_pod(resized) == [PodChange(resized, Seat(0, 0, 1.0), Seat(0, 0, 1.0))]
    assert requested(state, "n1", "cpu") == 2.0 and requested(state, "n1", "memory") == 0.0
    assert state.put_pod(resized) == []


def test_a_node_that_pods_name_before_it_is_seen(state: ClusterState) -> None:
    early = pod("p", node="n9")
    assert state.put_pod(early) == [ServiceAdded(0), NodeAdded(1), PodChange(early, None, Seat(1, 0, 1.0))]
    assert (state.alive.tolist(), state.nodes[1]) == ([True, False], None)
    assert state.put_node(node("n9")) == [NodeChanged(1)]
    assert state.alive.all() and state.put_node(node("n9")) == []
    assert state.delete_node("n9") == [NodeChanged(1)]
    assert not state.allocatable[1].any() and requested(state, "n9", "cpu") == 0.5
    assert state.delete_pod(early.uid) == [PodChange(early, Seat(1, 0, 1.0), None), NodeRemoved(1)]
    assert (state.names, "n9" in state.row_of) == (["n1", ""], False)
    assert state.put_node(node("n2")) == [NodeAdded(1)]
    assert state.delete_node("n2") == [NodeRemoved(1)]
    assert state.delete_node("n2") == state.delete_node("never") == []


def test_extended_resources_get_columns_as_they_appear(state: ClusterState) -> None:
    kinds = {f"example.com/{i}": float(i) for i in range(10)}
    state.put_node(node("n2", **kinds))
    state.put_pod(pod("p", node="n1", requests={"nvidia.com/gpu": 2.0}))
    assert list(state.kinds)[:5] == ["cpu", "memory", "pods", "ephemeral-storage", "example.com/0"]
    assert state.allocatable.shape == state.capacity.shape == state.requested.shape == (2, 15)
    assert state.allocatable[1, state.kinds["example.com/7"]] == 7.0
    assert requested(state, "n1", "nvidia.com/gpu") == 2.0
    state.put_node(node("n2"))
    assert state.allocatable[1, 4:].tolist() == [0.0] * 11


def test_many_nodes() -> None:
    state = ClusterState()
    for i in range(1000):
        state.put_node(node(f"n{i}", cpu=float(i)))
        state.put_pod(pod(f"p{i}", node=f"n{i}", requests={"cpu": i / 1000}))
    assert state.n_rows == 1000
    assert np.array_equal(state.allocatable[:, 0], np.arange(1000.0))
    assert np.array_equal(state.requested[:, 0], np.arange(1000) / 1000)
    assert self_check(state) == ()


def test_tables_cannot_be_written_from_outside(state: ClusterState) -> None:
    with pytest.raises(ValueError, match="read-only"):
        state.requested[0, 0] = 1.0


@pytest.mark.parametrize(
    ("more", "weight", "replicas"),
    [
        ({}, 1.0, 1.0),
        ({"phase": Phase.PENDING}, 1.0, 1.0),
        ({"terminating": True}, 0.0, 0.0),
        ({"phase": Phase.SUCCEEDED}, None, 0.0),
        ({"phase": Phase.FAILED}, None, 0.0),
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


def test_a_replica_set_that_comes_late_says_whose_its_pods_are(state: ClusterState) -> None:
    bare = replica_set("lone-7d9f")
    one = pod_of(bare, "x", node="n1")
    state.put_pod(one)
    guess, truth = ServiceKey("shop", "Deployment", "lone"), ServiceKey("shop", "ReplicaSet", "lone-7d9f")
    assert state.services == [guess]
    assert state.put_replica_set(bare) == [ServiceAdded(1), PodChange(one, Seat(0, 0, 1.0), Seat(0, 1, 1.0))]
    assert state.services[1] == truth
    assert (state.replicas(0), state.replicas(1)) == (0.0, 1.0)
    assert state.delete_replica_set(bare.uid) == [PodChange(one, Seat(0, 1, 1.0), Seat(0, 0, 1.0))]


def test_a_job_that_comes_late_says_whose_its_pods_are(state: ClusterState) -> None:
    one = pod("migrate-20261121-x", node="n1", owner=Owner("Job", "migrate-28540000"), owner_uid="job-migrate-28540000")
    state.put_pod(one)
    assert state.services == [ServiceKey("shop", "CronJob", "migrate")]
    state.put_job(job("migrate-28540000"))
    assert state.services[state.seat_of[one.uid].service] == ServiceKey("shop", "Job", "migrate-28540000")
    state.delete_job("job-migrate-28540000")
    assert state.seat_of[one.uid].service == 0


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


def test_a_list_of_replica_sets_settles_each_pod_once(state: ClusterState) -> None:
    state.put_pod(pod_of(OLD, "a", node="n1"))
    changes = state.replace(Kind.REPLICA_SETS, [OLD, NEW])
    assert [type(c) for c in changes] == [PodChange]
    assert weights(state) == {"cart-7d9f-a": 0.0}
    state.replace(Kind.REPLICA_SETS, [OLD])
    assert weights(state) == {"cart-7d9f-a": 1.0}


def test_a_new_pod_of_the_same_name_takes_the_place_of_the_old(state: ClusterState) -> None:
    old, new = pod("db-0", uid="old", node="n1", created=T0), pod("db-0", uid="new", node="n1", created=T0 + 1)
    state.put_pod(old)
    state.put_pod(new)  # whose predecessor's end nobody saw
    assert (state.pod_count[0], state.find_pod("shop", "db-0")) == (1, new)
    assert state.delete_pod("old") == []
    assert state.put_pod(old) == []  # old news
    assert (state.pod_count[0], state.find_pod("shop", "db-0")) == (1, new)
    state.delete_pod("new")
    assert state.pod_count[0] == 0


def test_an_orphan_that_is_adopted_is_its_old_owners_no_more(state: ClusterState) -> None:
    orphan = pod_of(OLD, "a", node="n1")
    state.put_pod(orphan)
    adopted = replace(orphan, owner=Owner("ReplicaSet", NEW.name), owner_uid=NEW.uid)
    state.put_pod(adopted)
    state.replace(Kind.REPLICA_SETS, [OLD, NEW])
    assert weights(state) == {adopted.name: 1.0}
    state.delete_pod(adopted.uid)
    assert state.delete_replica_set(OLD.uid) == state.delete_replica_set(NEW.uid) == []


def test_a_list_is_the_truth(state: ClusterState) -> None:
    state.replace(Kind.PODS, [pod("a", node="n1"), pod("b", node="n1"), pod("b", node="n1")])
    assert state.pod_count[0] == 2
    changes = state.replace(Kind.PODS, [pod("b", node="n1"), pod("c", node="n1")])
    assert [c.pod.name for c in changes if isinstance(c, PodChange)] == ["a", "c"]
    state.put_node(node("n2"))
    assert state.replace(Kind.NODES, [node("n2")]) == [NodeChanged(0)]
    assert state.alive.tolist() == [False, True]
    state.put_job(job("migrate"))
    state.replace(Kind.JOBS, [])
    assert state.jobs == {}


def test_requests_add_up_without_drift(state: ClusterState) -> None:
    for i in range(1000):
        state.put_pod(pod(f"p{i}", node="n1", requests={"cpu": 0.1, "memory": 0.1}))
    assert requested(state, "n1", "cpu") == 100.0
    assert requested(state, "n1", "memory") == 1000.0  # kube-scheduler rounds each up to whole bytes
    for i in range(999):
        state.delete_pod(f"uid-p{i}")
    assert requested(state, "n1", "cpu") == 0.1


def test_absurd_requests_are_taken_off_again(state: ClusterState) -> None:
    state.put_pod(pod("p", node="n1"))
    before = state.requested.copy()
    for i in range(100):
        state.put_pod(pod(f"absurd-{i}", node="n1", requests={"cpu": 1e30, "memory": 1e30}))
    assert np.isfinite(state.requested).all() and (state.requested >= before).all()
    for i in range(100):
        state.delete_pod(f"uid-absurd-{i}")
    assert np.array_equal(state.requested, before)


def test_the_requests_of_a_pod_as_a_row(state: ClusterState) -> None:
    wanted = pod("p", requests={"cpu": 0.25, "nvidia.com/gpu": 1.0})
    assert state.request_vector(wanted).tolist() == [0.25, 0.0, 1.0, 0.0]
    assert "nvidia.com/gpu" not in state.kinds
    before = state.requested[0].copy()
    state.put_pod(replace(wanted, node="n1", requests={"cpu": 0.25}))
    assert np.array_equal(state.requested[0] - before, state.request_vector(wanted))


def test_all_seats_as_arrays(state: ClusterState) -> None:
    state.put_pod(pod("a", node="n1"))
    state.put_pod(pod("b", node="n2", terminating=True))
    seats = state.seats()
    assert sorted(zip(seats.node, seats.service, seats.weight, strict=True)) == [(0, 0, 1.0), (1, 1, 0.0)]
    assert len(ClusterState().seats().node) == 0
