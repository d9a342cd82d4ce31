"""Binding through a real API server: once, to the node asked for, whatever becomes of the connection in between."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kube.binding.binder import BindingFailed, BindingRequest
from kube.binding.binding import ApiServerBinder
from kube.client.kubernetes_client import api_client
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running, ClusterWriter(running) as writer:
        writer.create_many(node(f"node-{i}") for i in range(3))
        yield running


@pytest.fixture
def writer(plane: ControlPlane) -> Iterator[ClusterWriter]:
    with ClusterWriter(plane) as writer:
        yield writer
        writer.delete_many(writer.list_all("pods"))


@pytest.fixture
def binder(plane: ControlPlane) -> Iterator[ApiServerBinder]:
    api = api_client(plane.kubeconfig, connections=32)
    yield ApiServerBinder(api)
    api.rest_client.pool_manager.clear()


def _request(created: Manifest, node: str = "node-1") -> BindingRequest:
    metadata = created["metadata"]
    return BindingRequest(metadata["namespace"], metadata["name"], metadata["uid"], node)


def _node_of(writer: ClusterWriter, name: str) -> str:
    found = {p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in writer.list_all("pods")}
    return str(found[name])


def test_a_pod_is_bound(binder: ApiServerBinder, writer: ClusterWriter) -> None:
    binder.bind(_request(writer.create(pod("cart-1"))))
    assert _node_of(writer, "cart-1") == "node-1"


def test_binding_again_to_the_same_node_is_success(binder: ApiServerBinder, writer: ClusterWriter) -> None:
    request = _request(writer.create(pod("cart-1")))
    binder.bind(request)
    binder.bind(request)
    assert _node_of(writer, "cart-1") == "node-1"


def test_a_pod_on_another_node_stays_there(binder: ApiServerBinder, writer: ClusterWriter) -> None:
    created = writer.create(pod("cart-1"))
    binder.bind(_request(created, "node-2"))
    with pytest.raises(BindingFailed, match="is on node node-2 already"):
        binder.bind(_request(created, "node-1"))
    assert _node_of(writer, "cart-1") == "node-2"


def test_a_later_pod_of_the_same_name_is_not_bound(binder: ApiServerBinder, writer: ClusterWriter) -> None:
    first = writer.create(pod("cart-1"))
    writer.delete(first)
    writer.create(pod("cart-1"))
    with pytest.raises(BindingFailed, match="replaced by another of the same name"):
        binder.bind(_request(first))
    assert _node_of(writer, "cart-1") == ""


def test_a_pod_that_is_gone_is_not_bound(binder: ApiServerBinder, writer: ClusterWriter) -> None:
    created = writer.create(pod("cart-1"))
    writer.delete(created)
    with pytest.raises(BindingFailed, match="not found"):
        binder.bind(_request(created))


def test_a_pod_that_is_being_deleted_is_not_bound(binder: ApiServerBinder, writer: ClusterWriter) -> None:
    manifest = pod("cart-1")
    manifest["metadata"]["finalizers"] = ["example.org/wait"]
    created = writer.create(manifest)
    writer.delete(created)
    try:
        with pytest.raises(BindingFailed, match="being deleted"):
            binder.bind(_request(created))
    finally:
        writer.patch(created, {"metadata": {"finalizers": None}})


def test_a_gated_pod_is_refused_at_once(binder: ApiServerBinder, writer: ClusterWriter) -> None:
    manifest = pod("cart-1")
    manifest["spec"]["schedulingGates"] = [{"name": "example.org/wait"}]
    created = writer.create(manifest)
    began = time.monotonic()
    with pytest.raises(BindingFailed, match="schedulingGates"):
        binder.bind(_request(created))
    assert time.monotonic() - began < 3  # not after all the time there is for trying


def test_without_the_right_to_bind_it_says_so(plane: ControlPlane, writer: ClusterWriter) -> None:
    api = api_client(plane.write_kubeconfig("nobody", plane.powerless_token))
    with pytest.raises(BindingFailed, match=r'refused to bind .* 403 .*cannot create resource "pods/binding"'):
        ApiServerBinder(api).bind(_request(writer.create(pod("cart-1"))))
    api.rest_client.pool_manager.clear()
