"""The check finds what is wrong in tables that were tampered with, and only that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cluster.tables.changes import Seat
from cluster.tables.self_check import drifts, observe, self_check
from cluster.tables.state import ClusterState
from kube.decoding.decoding import Kind
from tests.kube.api_objects import GIB, node, pod, pod_of, replica_set

T0 = 1_000_000.0
CART = "shop/Deployment/cart"


def cluster() -> ClusterState:
    state = ClusterState(now=T0)
    old = replica_set("cart-7d9f", deployment="cart", revision=1, created=T0 - 9000)
    new = replica_set("cart-8c5b", deployment="cart", revision=2, desired_replicas=5, created=T0)
    state.replace(Kind.REPLICA_SETS, [old, new])
    state.replace(Kind.NODES, [node("n1"), node("n2")])
    state.replace(
        Kind.PODS,
        [
            pod_of(old, "a", node="n1", requests={"cpu": 3.0, "memory": GIB}),
            pod_of(new, "b", node="n2"),
            pod("c", node="n3"),
            pod("d"),
        ],
    )
    return state


def corrupt_requested(state: ClusterState) -> None:
    state._columns._requested[0, 0] = 3.5


def corrupt_pod_count(state: ClusterState) -> None:
    state._columns._pod_count[1] = 7


def lose_a_seat(state: ClusterState) -> None:
    del state.seat_of["uid-c"]


def keep_a_seat(state: ClusterState) -> None:
    state.seat_of["uid-gone"] = Seat(0, 0, 1.0)


def weigh_a_superseded_pod(state: ClusterState) -> None:
    state.seat_of["uid-cart-7d9f-a"] = replace(state.seat_of["uid-cart-7d9f-a"], weight=1.0)


def seat_elsewhere(state: ClusterState) -> None:
    state.seat_of["uid-cart-8c5b-b"] = replace(state.seat_of["uid-cart-8c5b-b"], node=0)


def miscount_replicas(state: ClusterState) -> None:
    state._services.serving[state.seat_of["uid-c"].service] = 4


def forget_a_row(state: ClusterState) -> None:
    del state.row_of["n3"]


def keep_a_row(state: ClusterState) -> None:
    state._columns.take_row("n4")


def mark_dead(state: ClusterState) -> None:
    state._columns._alive[0] = False


def swap_services(state: ClusterState) -> None:
    state.services[0], state.services[1] = state.services[1], state.services[0]


@pytest.mark.parametrize(
    ("corrupt", "drift"),
    [
        (corrupt_requested, "node n1: requested cpu 3.5, 3 by its pods"),
        (corrupt_pod_count, "node n2: number of pods 7, 1 by its pods"),
        (lose_a_seat, "pod shop/c: is bound, but has no seat"),
        (keep_a_seat, "pod with UID uid-gone: has a seat, but is not there"),
        (
            weigh_a_superseded_pod,
            f"pod shop/cart-7d9f-a: on n1 for {CART} with weight 1, on n1 for {CART} with weight 0 by the objects",
        ),
        (
            seat_elsewhere,
            f"pod shop/cart-8c5b-b: on n1 for {CART} with weight 1, on n2 for {CART} with weight 1 by the objects",
        ),
        (miscount_replicas, "service shop/Pod/c: 4 replicas, 1 by its pods"),
        (forget_a_row, "rows are named 3 times, looked up as 2, and the two differ"),
        (keep_a_row, "node n4: has a row, but no pods and no Node"),
        (mark_dead, "node n1: row 0 is marked alive = False and holds n1"),
        (swap_services, "service shop/Deployment/cart: looked up as number 0, which is another"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_drift_is_found_and_named(corrupt: Callable[[ClusterState], None], drift: str) -> None:
    state = cluster()
    corrupt(state)
    assert drift in self_check(state)


def test_a_sound_state_has_no_drift_and_stays_as_it_was() -> None:
    assert self_check(cluster()) == ()
    assert self_check(ClusterState()) == ()
    state = cluster()
    observed = observe(state)
    state.delete_pod("uid-c")
    state.put_pod(pod("e", node="n1"))
    state.expire(T0 + 9999)
    assert drifts(observed) == ()
    assert self_check(state) == ()


def test_a_thousand_drifts_are_not_all_listed() -> None:
    state = ClusterState()
    for i in range(300):
        state.put_node(node(f"n{i}"))
    state._columns._requested[:] = 1.0
    found = self_check(state)
    assert len(found) == 101
    assert found[-1] == "and 1100 more of this kind"
