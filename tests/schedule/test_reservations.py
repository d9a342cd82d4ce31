"""Room that is reserved on a real API server: strangers do not get it, its owner's pod takes it once, and it ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from testing.clusters.own_nodes import assert_settled, nodes_of, our_node, our_pod
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api, Refused
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.schedule.conftest import Started

PATH: Final = "/apis/forecast-scheduler.io/v1alpha1/namespaces/default/reservations"
OWNERS: Final = {"matchLabels": {"app": "cart"}}


class Reserving:
    """Reservations of the namespace `default`."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def create(self, name: str, cpu: str = "3") -> dict[str, Any]:
        given = {"owners": OWNERS, "lifetime": "1h", "resources": {"cpu": cpu}}
        return dict(self.api.request("POST", PATH, _object(name, given)))

    def status(self, name: str) -> dict[str, Any]:
        return dict(self.api.request("GET", f"{PATH}/{name}").get("status", {}))

    def is_in(self, name: str, phase: str) -> bool:
        return self.status(name).get("phase") == phase

    def delete(self, name: str) -> None:
        self.api.request("DELETE", f"{PATH}/{name}")


def _object(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    kind = {"apiVersion": "forecast-scheduler.io/v1alpha1", "kind": "Reservation"}
    return {**kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def is_rejected(writer: ClusterWriter, name: str) -> bool:
    """Whether an attempt to place the pod has failed."""
    pod = next(one for one in writer.list_all("pods") if one["metadata"]["name"] == name)
    return any(one.get("reason") == "Unschedulable" for one in pod.get("status", {}).get("conditions", []))


@pytest.fixture(scope="module")
def definition(module_plane: ControlPlane) -> None:
    with Api(module_plane) as api:
        for path, manifest in shipped("crds/reservations/reservations.yaml"):
            api.request("POST", path, manifest)

        def is_served() -> bool:
            try:
                return not api.request("GET", PATH)["items"]
            except Refused:
                return False

        assert eventually(is_served)


@pytest.fixture
def reserving(plane: ControlPlane, definition: None) -> Iterator[Reserving]:
    with Api(plane) as api:
        yield Reserving(api)
        for one in api.request("GET", PATH)["items"]:
            api.request("DELETE", f"{PATH}/{one['metadata']['name']}")


def test_strangers_do_not_get_the_room_and_its_owners_pod_takes_it(
    writer: ClusterWriter, start: Started, reserving: Reserving
) -> None:
    writer.create(our_node("a", cpu=4))
    scheduler = start()
    reserving.create("release")
    assert eventually(lambda: reserving.is_in("release", "Available")), scheduler.log[-3000:]
    assert reserving.status("release")["node"] == "a"
    writer.create(our_pod("stranger", cpu="2"))
    writer.create(our_pod("small", cpu="1"))
    assert eventually(lambda: nodes_of(writer)["small"] == "a"), scheduler.log[-3000:]
    assert nodes_of(writer)["stranger"] == ""
    assert scheduler.metric("forecast_reservations") == 1
    writer.create(our_pod("cart-1", cpu="3", labels={"app": "cart"}))
    assert eventually(lambda: nodes_of(writer)["cart-1"] == "a"), scheduler.log[-3000:]
    assert eventually(lambda: reserving.is_in("release", "Taken")), reserving.status("release")
    assert reserving.status("release")["takenBy"]["name"] == "cart-1"
    assert nodes_of(writer)["stranger"] == ""
    # Once only: what leaves with the pod is free for all.
    writer.delete_many([one for one in writer.list_all("pods") if one["metadata"]["name"] == "cart-1"])
    assert eventually(lambda: nodes_of(writer)["stranger"] == "a"), scheduler.log[-3000:]
    assert_settled(writer, [scheduler])


@pytest.mark.parametrize("end", ["expired", "deleted"])
def test_the_room_ends(writer: ClusterWriter, start: Started, reserving: Reserving, end: str) -> None:
    writer.create(our_node("a", cpu=4))
    scheduler = start()
    reserving.create("release", cpu="4")
    assert eventually(lambda: reserving.is_in("release", "Available")), scheduler.log[-3000:]
    writer.create(our_pod("stranger", cpu="2"))
    assert eventually(lambda: is_rejected(writer, "stranger")), scheduler.log[-3000:]
    assert nodes_of(writer)["stranger"] == ""
    if end == "deleted":
        reserving.delete("release")
    else:
        reserving.api.request("PATCH", f"{PATH}/release", {"spec": {"lifetime": "1s"}})
        assert eventually(lambda: reserving.is_in("release", "Expired")), scheduler.log[-3000:]
    assert eventually(lambda: nodes_of(writer)["stranger"] == "a"), scheduler.log[-3000:]
    assert_settled(writer, [scheduler])


def test_after_a_kill_the_room_is_held_before_any_pod_is_placed(
    writer: ClusterWriter, start: Started, reserving: Reserving
) -> None:
    writer.create(our_node("a", cpu=4))
    first = start()
    reserving.create("release", cpu="4")
    assert eventually(lambda: reserving.is_in("release", "Available")), first.log[-3000:]
    first.kill()
    writer.create(our_pod("stranger", cpu="2"))
    second = start()
    assert eventually(lambda: is_rejected(writer, "stranger")), second.log[-3000:]
    assert nodes_of(writer)["stranger"] == ""
    writer.create(our_pod("cart-1", cpu="4", labels={"app": "cart"}))
    assert eventually(lambda: nodes_of(writer)["cart-1"] == "a"), second.log[-3000:]
    assert_settled(writer, [second])
