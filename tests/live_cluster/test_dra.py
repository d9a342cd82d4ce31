"""Dynamic Resource Allocation on a real API server: what is written is accepted, seen, fought over and taken back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from kube.client.kubernetes_client import api_client
from kube.client.kubernetes_source import source_of
from kube.objects.objects import PodInfo, PodResourceClaim
from kube.session.api_session import ApiSession
from placement.status import Status
from profiles.gpu.dra.claim_table import DraTable
from profiles.gpu.dra.dra_objects import FINALIZER
from profiles.gpu.dra.dra_subscriptions import dra_subscriptions
from profiles.gpu.dra.dynamic_resources import DynamicResources
from testing.placement.views import node_named, passing, pod_with, view_of
from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.profiles.gpu.dra.manifests import (
    DRIVER,
    claim,
    device,
    device_class,
    request,
    resource_slice,
)
from tests.profiles.gpu.dra.test_expressions import ACCEPTED

LONG: Final = 60.0


def in_default(made: Manifest) -> Manifest:
    del made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    return made | {"metadata": made["metadata"] | {"namespace": "default"}}


class World:
    """Nodes a and b with four devices each, tables that follow the server, and the plugin over them."""

    def __init__(self, kubeconfig: Path, writer: ClusterWriter) -> None:
        self.writer = writer
        api = api_client(kubeconfig)
        self.lock = threading.RLock()
        self.view = view_of([node_named("a"), node_named("b")])
        self.session = ApiSession(api)
        self.table = DraTable(self.view.state, lambda: self.lock)
        self.plugin = DynamicResources(self.session, self.view, self.table)
        self.source = source_of(api, dra_subscriptions(self.table))

    def __enter__(self) -> World:
        self.session.start()
        self.source.start()
        assert self.source.wait_synced(LONG)
        return self

    def __exit__(self, *unused: object) -> None:
        self.source.stop()
        self.session.stop()

    def claim(self, name: str, *requests: Manifest, **devices: Any) -> Manifest:
        """Created, and seen."""
        made = self.writer.create(in_default(claim(name, *requests, **devices)))
        assert eventually(lambda: self.table.claim("default", name) is not None)
        return made

    def get(self, name: str) -> Manifest:
        (found,) = [one for one in self.writer.list_all("resourceclaims") if one["metadata"]["name"] == name]
        return found

    def devices(self, name: str) -> list[str]:
        results = self.get(name).get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
        return [f"{one['request']}={one['pool']}/{one['device']}" for one in results]

    def users(self, name: str) -> list[str]:
        return [one["uid"] for one in self.get(name).get("status", {}).get("reservedFor", [])]

    @staticmethod
    def pod(name: str, *claims: str) -> PodInfo:
        named = tuple(PodResourceClaim(one, one) for one in claims)
        return replace(pod_with(name=name), namespace="default", resource_claims=named)

    def fits(self, pod: PodInfo) -> set[str]:
        with self.lock:
            return passing(self.plugin, pod, self.view)

    def reserve(self, pod: PodInfo, node: str) -> Status:
        with self.lock:
            return self.plugin.reserve(pod, node)

    def pre_bind(self, pod: PodInfo, node: str) -> Status:
        return self.session.submit(self.plugin.pre_bind(pod, node)).result(LONG)

    def used(self) -> int:
        with self.lock:
            return len(self.table.used)

    def is_as_before(self) -> bool:
        return self.used() == 0 and not self.table.in_flight and not self.table.made


@pytest.fixture(scope="module")
def described(plane: ControlPlane) -> Iterator[ClusterWriter]:
    with ClusterWriter(plane) as writer:
        for name in "ab":
            devices = (device(str(i), numa=i // 2, model="A100", version={"version": "1.2.3"}) for i in range(4))
            writer.create(resource_slice(f"slice-{name}", *devices, node=name))
        config = [{"opaque": {"driver": DRIVER, "parameters": {"mode": "shared"}}}]
        writer.create(device_class("gpu", config=config))
        yield writer


def remove_claims(writer: ClusterWriter) -> None:
    for one in writer.list_all("resourceclaims"):
        writer.patch(one, {"metadata": {"finalizers": None}})
        writer.delete(one)


@pytest.fixture
def world(plane: ControlPlane, described: ClusterWriter) -> Iterator[World]:
    with World(plane.kubeconfig, described) as made:
        yield made
        remove_claims(described)


def test_an_allocation_is_accepted_seen_and_taken_back(world: World) -> None:
    listed = request("l", first=[request("huge", count=30), request("two", count=2)])
    picky = request("p", f'device.attributes["{DRIVER}"].version.isGreaterThan(semver("1.2.0"))')
    tolerant = request("t", tolerations=[{"key": "x", "operator": "Exists", "effect": "NoSchedule"}])
    same = {"matchAttribute": f"{DRIVER}/numa", "requests": ["l", "p"]}
    world.claim("c", listed, picky, tolerant)
    world.claim("bound-together", request("l", count=2), constraints=[same | {"requests": ["l"]}])
    pod = world.pod("p1", "c")
    assert world.fits(pod) == {"a", "b"} and world.reserve(pod, "a").is_success
    assert world.pre_bind(pod, "a").is_success
    assert world.devices("c") == ["l/two=a/0", "l/two=a/1", "p=a/2", "t=a/3"] and world.users("c") == ["p1"]
    written = world.get("c")
    assert FINALIZER in written["metadata"]["finalizers"]
    allocation = written["status"]["allocation"]
    assert allocation["allocationTimestamp"] and allocation["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"]
    assert allocation["devices"]["config"][0]["requests"] == ["l/two", "p", "t"]
    assert world.fits(world.pod("p2", "bound-together")) == {"b"} and world.fits(world.pod("p3", "c")) == {"a"}
    world.plugin.unreserve(pod, "a")
    assert eventually(world.is_as_before)
    assert world.devices("c") == [] and world.users("c") == []
    assert world.reserve(world.pod("p2", "bound-together"), "a").is_success


def test_expressions_that_are_evaluated_here_are_accepted_there(described: ClusterWriter) -> None:
    described.create_many(device_class(f"accepted-{at}", one) for at, one in enumerate(ACCEPTED))
