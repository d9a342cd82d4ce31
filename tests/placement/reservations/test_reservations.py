"""What the watch says of Reservations is what the tables hold."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from cluster.assuming_cluster import AssumingCluster
from placement.reservations.reservations import Reservations
from scorer.options import ScorerOptions
from testing.objects import node_info, pod_info
from tests.placement.reservations.test_decoding import AVAILABLE, CREATED, reservation


class World:
    def __init__(self, *places: str) -> None:
        self.now = CREATED
        self.cluster = AssumingCluster(ScorerOptions(), now=CREATED)
        self.cluster.put(node_info("a", allocatable={"cpu": 8.0, "memory": 2.0**36, "pods": 110.0}))
        self.tested = Reservations(
            lambda: nullcontext(self.cluster), clock=lambda: self.now, default_name="ours", places=places
        )

    @property
    def requested(self) -> float:
        state = self.cluster.state
        return float(state.requested[state.row_of["a"], state.kinds["cpu"]])


def test_room_comes_and_goes_with_the_status() -> None:
    world = World()
    world.tested.put(reservation())
    assert not world.cluster.state.pods, "it waits, and is not placed here"
    world.tested.put(reservation(**AVAILABLE))
    assert world.requested == 2
    world.tested.put(reservation(**(AVAILABLE | {"phase": "Taken"})))
    assert world.requested == 0
    assert world.tested.by_phase() == {"Pending": 0, "Available": 0, "Taken": 1, "Expired": 0}


@pytest.mark.parametrize("absent", [True, False])
def test_a_list_says_what_there_is(absent: bool) -> None:
    world = World()
    world.tested.replace([reservation(**AVAILABLE), reservation(name="second", **AVAILABLE)])
    assert (world.requested, world.tested.is_installed) == (4, True)
    if absent:
        world.tested.absent()
    else:
        world.tested.replace([])
    assert (world.requested, world.tested.is_installed) == (0, not absent)


@pytest.mark.parametrize(
    ("places", "named", "waits"),
    [("ours", "", True), ("ours", "ours", True), ("ours", "gpu", False), ("gpu", "gpu", True), ("", "ours", False)],
)
def test_it_waits_where_it_is_placed(places: str, named: str, waits: bool) -> None:
    world = World(*([places] if places else []))
    world.tested.put(reservation({"schedulerName": named}))
    assert ("uid-release" in world.cluster.state.pods) is waits


def test_what_is_over_does_not_wait() -> None:
    world = World("ours")
    world.now += 24 * 3600
    world.tested.put(reservation())
    assert not world.cluster.state.pods


@pytest.mark.parametrize("first", ["pods", "reservations"])
def test_the_pod_of_a_status_takes_no_second_room(first: str) -> None:
    """kube-scheduler bound it, so that it does not say itself which room it has."""
    world = World()
    since = CREATED + 5
    pod = pod_info("cart-1", namespace="shop", node="a", labels={"app": "cart"}, scheduled=since, requests={"cpu": 1.0})
    taken = AVAILABLE | {"phase": "Taken", "takenBy": {"name": pod.name, "uid": pod.uid}}
    if first == "pods":
        world.cluster.replace_pods([pod])
    world.tested.replace([reservation(**taken), reservation(name="second", **AVAILABLE)])
    world.cluster.replace_pods([pod])
    assert world.requested == 3
    world.cluster.put_pod(replace(pod, priority=7))
    assert world.requested == 3
