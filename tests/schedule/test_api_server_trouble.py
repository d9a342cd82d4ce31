"""The API server ends, hangs up, loses words, is behind, or has no time: every pod is bound, or waits with a reason."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
import urllib3

from testing.clusters.own_nodes import LONG, QUICK_LEASE, assert_settled, bound, our_node, our_pod
from testing.processes.scorer_process import ScorerProcess, eventually
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, replica_set
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.tcp_proxy import TcpProxy
from tests.schedule.conftest import Started

N_PODS = 400
SLOWLY = {"bindings_in_flight": 2}
"""There is a middle in which something may happen."""


def test_it_is_killed_and_comes_back_while_a_burst_is_bound(
    plane: ControlPlane, writer: ClusterWriter, start: Started, proxy: TcpProxy
) -> None:
    n_pods = 100
    process = start(url=proxy.url, **SLOWLY)
    proxy.lag_new_connections(0.1)
    _burst(writer, n_pods)
    assert eventually(lambda: process.metric("forecast_pod_scheduling_seconds_count") > 0, LONG), process.log
    plane.api_server.kill()
    assert process.metric("forecast_pod_scheduling_seconds_count") < n_pods, "it was not killed in the middle"
    proxy.lag_new_connections(0.001)
    plane.api_server.start()
    assert eventually(lambda: bound(writer) == n_pods, LONG), process.log[-3000:]
    assert all(assert_settled(writer, [process]).values())


@pytest.mark.long
def test_bindings_that_ran_out_of_time_while_it_was_away_are_settled_long_before_assumptions_end(
    plane: ControlPlane, writer: ClusterWriter, start: Started, proxy: TcpProxy
) -> None:
    """Pods that it had bound without an answer arriving, and pods that it had not."""
    n_pods = 20
    process = start(url=proxy.url, bindings_in_flight=8, binding_timeout="1s", assume_timeout=_LONGER_THAN_LONG)
    proxy.lag_new_connections(0.5)
    _burst(writer, n_pods)
    assert eventually(lambda: bound(writer) > 0, LONG), process.log[-3000:]
    proxy.refuse(True)
    n_bound = bound(writer)
    assert n_bound < n_pods, "it was not killed in the middle"
    with _away(plane, proxy):
        assert eventually(lambda: process.metric("forecast_bindings_in_flight") == 0, LONG), process.log[-3000:]
        assert process.metric("forecast_assumed_pods") >= n_pods - n_bound
    _assert_asked_and_bound(writer, process, n_pods)


def test_bindings_of_a_leader_that_lost_its_lease_while_it_was_away_are_settled_long_before_assumptions_end(
    plane: ControlPlane, writer: ClusterWriter, start: Started, proxy: TcpProxy
) -> None:
    """It may not try again what got no answer, and leads again later."""
    n_pods = 20
    process = start(url=proxy.url, bindings_in_flight=8, assume_timeout=_LONGER_THAN_LONG, lease=QUICK_LEASE)
    assert eventually(lambda: process.metric("forecast_leader") == 1, LONG), process.log
    proxy.lag_new_connections(0.5)  # connections that bind are made first: the requests come later
    _burst(writer, n_pods)
    assert eventually(lambda: process.metric("forecast_bindings_in_flight") > 0, LONG), process.log[-3000:]
    with _away(plane, proxy):
        assert eventually(lambda: process.metric("forecast_leader") == 0, LONG), process.log[-3000:]
        assert eventually(lambda: process.metric("forecast_bindings_in_flight") == 0, LONG), process.log[-3000:]
        assert process.metric("forecast_assumed_pods") > 0, "it was not killed in the middle"
    _assert_asked_and_bound(writer, process, n_pods)


def test_pods_whose_answer_comes_too_late_are_reported_once_the_watch_shows_them(
    plane: ControlPlane, writer: ClusterWriter, start: Started, proxy: TcpProxy
) -> None:
    """All connections but those of watches lag so much that a binding is carried out and its answer is too late."""
    n_pods = 6
    writer.create_many(our_node(f"node-{i}") for i in range(2))
    process = start(url=proxy.url, binding_timeout="1s", assume_timeout=_LONGER_THAN_LONG)
    _await_no_new_connection(proxy)
    proxy.lag_new_connections(0.7)
    writer.create_many(our_pod(f"late-{i}", cpu="100m") for i in range(n_pods))
    assert eventually(lambda: bound(writer) == n_pods, LONG), process.log[-3000:]
    assert eventually(lambda: process.metric("forecast_bindings_in_flight") == 0, LONG), "no answer is asked for again"
    proxy.lag_new_connections(0.001)
    counted = "forecast_pod_scheduling_seconds_count"
    assert eventually(lambda: process.metric(counted) == n_pods, 15), process.log[-3000:]
    assert "the API server is asked" not in process.log
    with Api(plane) as api:

        def reported_pods() -> list[str]:
            found = api.request("GET", "/apis/events.k8s.io/v1/namespaces/default/events")["items"]
            about = [one["regarding"]["name"] for one in found if one["reason"] == "Scheduled"]
            return sorted(name for name in about if name.startswith("late-"))

        assert eventually(lambda: reported_pods() == [f"late-{i}" for i in range(n_pods)], LONG), reported_pods()
    assert all(assert_settled(writer, [process]).values())


def _await_no_new_connection(proxy: TcpProxy, seconds: float = 2.0) -> None:
    """All watches are open then."""
    before = -1
    while proxy.accepted != before:
        before = proxy.accepted
        time.sleep(seconds)


_LONGER_THAN_LONG = "5m"


@contextmanager
def _away(plane: ControlPlane, proxy: TcpProxy) -> Iterator[None]:
    """Killed, and its connections with it; afterwards it is back, without a lag."""
    proxy.refuse(True)
    plane.api_server.kill()
    yield
    proxy.lag_new_connections(0.001)
    proxy.refuse(False)
    plane.api_server.start()


def _assert_asked_and_bound(writer: ClusterWriter, process: ScorerProcess, n_pods: int) -> None:
    assert eventually(lambda: bound(writer) == n_pods, LONG), process.log[-3000:]
    assert all(assert_settled(writer, [process]).values())
    assert "got no answer: the API server is asked" in process.log
    assert "is not seen on its node" not in process.log


@pytest.mark.long
def test_connections_are_reset_and_answers_lost(writer: ClusterWriter, start: Started, proxy: TcpProxy) -> None:
    _burst(writer, N_PODS)
    process = start(url=proxy.url, **SLOWLY)
    for n_bound in range(0, N_PODS, N_PODS // 8):
        assert eventually(lambda n=n_bound: bound(writer) > n, LONG), process.log[-3000:]  # type: ignore[misc]
        if n_bound % 100:
            proxy.lose_answers(2)
        else:
            proxy.cut()
    assert eventually(lambda: bound(writer) == N_PODS, LONG), process.log[-3000:]
    assert proxy.lost > 0
    assert all(assert_settled(writer, [process]).values())


def test_the_watch_lags_by_seconds(writer: ClusterWriter, start: Started, proxy: TcpProxy) -> None:
    """Bindings are answered at once, and seen long after assumptions are looked into."""
    n_pods = 60
    process = start(url=proxy.url, assume_timeout="1s")
    writer.create_many(our_node(f"node-{i}", cpu=1) for i in range(n_pods // 20))
    _await_watches(writer)
    proxy.lag_open_connections(3.0)
    made = writer.create_many(our_pod(f"lag-{i}", cpu="100m") for i in range(n_pods))
    assert eventually(lambda: bound(writer, "lag") == n_pods // 2, LONG), process.log[-3000:]
    assert process.metric("forecast_assumed_pods") > 0, "the watch does not lag"
    nodes = assert_settled(writer, [process])
    assert "the API server is asked" in process.log
    # Room that is free comes to be known as late as everything else.
    writer.delete_many(one for one in made if nodes[one["metadata"]["name"]])
    assert eventually(lambda: bound(writer) == n_pods // 2, LONG), process.log[-3000:]
    assert all(assert_settled(writer, [process]).values())


def _await_watches(writer: ClusterWriter) -> None:
    """They are up once a pod has been bound that came after the lists."""
    first = writer.create(our_pod("first"))
    assert eventually(lambda: bound(writer, "first") == 1, LONG)
    writer.delete(first)


def test_a_node_is_deleted_while_pods_are_assumed_on_it(writer: ClusterWriter, start: Started, proxy: TcpProxy) -> None:
    n_pods = 40
    gone = writer.create(our_node("gone"))
    process = start(url=proxy.url, **SLOWLY)
    proxy.lag_new_connections(0.2)
    writer.create_many(our_pod(f"move-{i}", cpu="100m") for i in range(n_pods))
    assert eventually(lambda: process.metric("forecast_assumed_pods") > n_pods / 2, LONG), process.log
    writer.delete(gone)
    writer.create(our_node("stays"))
    assert eventually(lambda: bound(writer) == n_pods, LONG), process.log[-3000:]
    on_it = writer.list_all("pods", field_selector="spec.nodeName=gone")
    writer.delete_many(on_it)  # as the garbage collector of pods does
    nodes = assert_settled(writer, [process])
    assert len(nodes) == n_pods - len(on_it) > 0 and set(nodes.values()) == {"stays"}


def test_somebody_else_binds_pods_that_wait_for_their_turn(
    writer: ClusterWriter, start: Started, proxy: TcpProxy
) -> None:
    n_pods = 40
    writer.create_many((our_node("ours"), node("theirs")))
    process = start(url=proxy.url, **SLOWLY)
    proxy.lag_new_connections(0.2)
    writer.create_many(our_pod(f"taken-{i}", cpu="100m") for i in range(n_pods))
    assert eventually(lambda: process.metric("forecast_assumed_pods") > n_pods / 2, LONG), process.log
    waiting = [one["metadata"]["name"] for one in writer.list_all("pods", field_selector="spec.nodeName=")]
    taken = waiting[::2]
    writer.in_parallel(lambda name: _take(writer, name), taken)
    assert eventually(lambda: bound(writer) == n_pods, LONG), process.log[-3000:]
    nodes = assert_settled(writer, [process], shared={"theirs"})
    theirs = {name for name, at in nodes.items() if at == "theirs"}
    assert theirs and theirs <= set(taken)


def _take(writer: ClusterWriter, name: str) -> None:
    """Unless it is ours already."""
    with suppress(RuntimeError):
        writer.bind(name, "theirs")


@pytest.mark.long
def test_an_api_server_without_time_for_so_many(start: Started) -> None:
    """It serves one write at a time and answers 429 to all others, but for administrators."""
    n_pods = 16
    with (
        ControlPlane(api_server_arguments=["--max-mutating-requests-inflight=1"]) as busy,
        ClusterWriter(busy) as writer,
        urllib3.PoolManager(ca_certs=str(busy.ca_file)) as pool,
    ):
        writer.create(_anything_for("nobody"))
        process = start(kubeconfig=busy.write_kubeconfig("nobody", busy.powerless_token))
        writer.create_many(our_pod(f"busy-{i}", cpu="100m") for i in range(n_pods))
        assert not any(assert_settled(writer, [process]).values())
        writer.create(our_node("node-0", cpu=10))  # all of them are bound at once, on connections that are open
        assert eventually(lambda: bound(writer) == n_pods, LONG), process.log[-3000:]
        assert all(assert_settled(writer, [process]).values())
        told = pool.request("GET", f"{busy.url}/metrics", headers={"Authorization": f"Bearer {busy.token}"})
        refused = [line for line in told.data.decode().splitlines() if 'code="429"' in line]
        assert any('subresource="binding"' in line for line in refused), refused


def _anything_for(user: str) -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"anything-for-{user}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }


def _burst(writer: ClusterWriter, n_pods: int) -> None:
    """Pods, and nodes that they fill to the last bit."""
    writer.create_many(our_node(f"node-{i}", cpu=2) for i in range(n_pods // 20))
    owner = writer.create(replica_set("burst-7d9f", deployment="burst"))
    writer.create_many(our_pod(f"burst-{i}", cpu="100m", owner=owner) for i in range(n_pods))
