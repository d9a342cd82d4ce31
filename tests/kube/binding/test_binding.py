"""Binding through a real API server: once, to the node asked for, whatever becomes of the connection in between."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kube.binding.binder import BindingFailed, BindingRequest
from kube.binding.binding import ApiServerBinder
from kube.client.kubernetes_client import api_client
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.servers.control_plane.tcp_proxy import TcpProxy


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
def proxy(plane: ControlPlane) -> Iterator[TcpProxy]:
    with TcpProxy(plane.api_server.port) as proxy:
        yield proxy


@pytest.fixture
def through_proxy(plane: ControlPlane, proxy: TcpProxy) -> Iterator[Callable[..., ApiServerBinder]]:
    """Makes binders that talk through the proxy, on connections that are open already."""
    clients = []

    def make(**settings: float) -> ApiServerBinder:
        api = api_client(plane.write_kubeconfig("admin", plane.token, url=proxy.url), connections=32)
        clients.append(api)
        binder = ApiServerBinder(api, **settings)  # type: ignore[arg-type]
        with pytest.raises(BindingFailed):
            binder.bind(BindingRequest("default", "nobody", "uid", "node-0"))
        return binder

    yield make
    for api in clients:
        api.rest_client.pool_manager.clear()


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


def test_an_answer_that_is_lost_is_looked_after(
    through_proxy: Callable[..., ApiServerBinder], proxy: TcpProxy, writer: ClusterWriter
) -> None:
    """The pod is bound, the connection resets before we hear of it: success, and one binding only."""
    binder = through_proxy()
    request = _request(writer.create(pod("cart-1")))
    proxy.lose_answers(1)
    binder.bind(request)
    assert proxy.lost == 1 and _node_of(writer, "cart-1") == "node-1"


def test_a_connection_cut_before_the_request_is_tried_again(
    through_proxy: Callable[..., ApiServerBinder], proxy: TcpProxy, writer: ClusterWriter
) -> None:
    binder = through_proxy()
    request = _request(writer.create(pod("cart-1")))
    proxy.cut()
    binder.bind(request)
    assert _node_of(writer, "cart-1") == "node-1"


def test_a_connection_that_falls_silent_is_given_up(
    through_proxy: Callable[..., ApiServerBinder], proxy: TcpProxy, writer: ClusterWriter
) -> None:
    binder = through_proxy(attempt_seconds=0.5)
    request = _request(writer.create(pod("cart-1")))
    proxy.freeze()
    binder.bind(request)
    assert _node_of(writer, "cart-1") == "node-1"


def test_an_api_server_that_is_away_is_an_error_in_time_and_a_second_try_binds(
    through_proxy: Callable[..., ApiServerBinder], proxy: TcpProxy, writer: ClusterWriter
) -> None:
    binder = through_proxy(seconds=1.0)
    request = _request(writer.create(pod("cart-1")))
    proxy.refuse(True)
    with pytest.raises(BindingFailed, match="not known to be bound within 1 s: no answer"):
        binder.bind(request)
    proxy.refuse(False)
    binder.bind(request)
    assert _node_of(writer, "cart-1") == "node-1"


def test_an_outage_within_the_time_is_waited_out(
    through_proxy: Callable[..., ApiServerBinder], proxy: TcpProxy, writer: ClusterWriter
) -> None:
    binder = through_proxy(seconds=20.0)
    request = _request(writer.create(pod("cart-1")))
    proxy.refuse(True)
    back = threading.Timer(0.5, proxy.refuse, [False])
    back.start()
    binder.bind(request)
    back.join()
    assert _node_of(writer, "cart-1") == "node-1"


def test_two_who_disagree_bind_a_pod_once(binder: ApiServerBinder, writer: ClusterWriter) -> None:
    """Two replicas, two decisions, twenty pods: one wins each, and the other is told."""
    created = writer.create_many(pod(f"cart-{i}") for i in range(20))

    def bound(request: BindingRequest) -> bool:
        try:
            binder.bind(request)
        except BindingFailed:
            return False
        return True

    requests = [_request(one, target) for one in created for target in ("node-1", "node-2")]
    with ThreadPoolExecutor(16) as threads:
        won = list(threads.map(bound, requests))
    for first, second, one in zip(won[::2], won[1::2], created, strict=True):
        assert first != second
        assert _node_of(writer, one["metadata"]["name"]) == ("node-1" if first else "node-2")


def test_lost_answers_by_the_dozen_bind_every_pod_once(
    through_proxy: Callable[..., ApiServerBinder], proxy: TcpProxy, writer: ClusterWriter
) -> None:
    """Connections are reset again and again while forty pods are bound: all are, each where it was to go."""
    binder = through_proxy(seconds=20.0)
    created = writer.create_many(pod(f"cart-{i:02d}") for i in range(40))
    over = threading.Event()

    def trouble() -> None:
        while not over.wait(0.05):
            proxy.cut()

    troublemaker = threading.Thread(target=trouble)
    troublemaker.start()
    try:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(binder.bind, [_request(one, f"node-{i % 3}") for i, one in enumerate(created)]))
    finally:
        over.set()
        troublemaker.join()
    found = {p["metadata"]["name"]: p["spec"].get("nodeName") for p in writer.list_all("pods")}
    assert found == {f"cart-{i:02d}": f"node-{i % 3}" for i in range(40)}
