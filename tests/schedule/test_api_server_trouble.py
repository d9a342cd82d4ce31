"""The API server ends, hangs up, loses words, is behind, or has no time: every pod is bound, or waits with a reason."""

from __future__ import annotations

import time

from testing.clusters.own_nodes import assert_settled, bound, our_node, our_pod
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter, replica_set
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.tcp_proxy import TcpProxy
from testing.waiting import eventually
from tests.schedule.conftest import Started

SLOWLY = {"bindings_in_flight": 2}
"""There is a middle in which something may happen."""


def test_it_is_killed_and_comes_back_while_a_burst_is_bound(
    plane: ControlPlane, writer: ClusterWriter, start: Started, proxy: TcpProxy
) -> None:
    n_pods = 100
    process = start(url=proxy.url, **SLOWLY)
    proxy.lag_new_connections(0.1)
    _burst(writer, n_pods)
    assert eventually(lambda: process.metric("forecast_pod_scheduling_seconds_count") > 0), process.log
    plane.api_server.kill()
    assert process.metric("forecast_pod_scheduling_seconds_count") < n_pods, "it was not killed in the middle"
    proxy.lag_new_connections(0.001)
    plane.api_server.start()
    assert eventually(lambda: bound(writer) == n_pods), process.log[-3000:]
    assert all(assert_settled(writer, [process]).values())


def test_pods_whose_answer_comes_too_late_are_reported_once_the_watch_shows_them(
    plane: ControlPlane, writer: ClusterWriter, start: Started, proxy: TcpProxy
) -> None:
    """All connections but those of watches lag so much that a binding is carried out and its answer is too late."""
    n_pods = 6
    writer.create_many(our_node(f"node-{i}") for i in range(2))
    process = start(url=proxy.url, binding_timeout="1s", assume_timeout=_LONGER_THAN_LONG)
    _await_watches(writer)
    _await_no_new_connection(proxy)
    proxy.lag_new_connections(0.7)
    writer.create_many(our_pod(f"late-{i}", cpu="100m") for i in range(n_pods))
    assert eventually(lambda: bound(writer) == n_pods), process.log[-3000:]
    assert eventually(lambda: process.metric("forecast_bindings_in_flight") == 0), "no answer is asked for again"
    proxy.lag_new_connections(0.001)
    counted = "forecast_pod_scheduling_seconds_count"
    assert eventually(lambda: process.metric(counted) == n_pods + 1), process.log[-3000:]  # one was bound before
    assert "the API server is asked" not in process.log
    with Api(plane) as api:

        def reported_pods() -> list[str]:
            found = api.request("GET", "/apis/events.k8s.io/v1/namespaces/default/events")["items"]
            about = [one["regarding"]["name"] for one in found if one["reason"] == "Scheduled"]
            return sorted(name for name in about if name.startswith("late-"))

        assert eventually(lambda: reported_pods() == [f"late-{i}" for i in range(n_pods)]), reported_pods()
    assert all(assert_settled(writer, [process]).values())


def _await_no_new_connection(proxy: TcpProxy, seconds: float = 2.0) -> None:
    """All watches are open then."""
    before = -1
    while proxy.accepted != before:
        before = proxy.accepted
        time.sleep(seconds)


_LONGER_THAN_LONG = "5m"


def test_the_watch_lags_by_seconds(writer: ClusterWriter, start: Started, proxy: TcpProxy) -> None:
    """Bindings are answered at once, and seen long after assumptions are looked into."""
    n_pods = 60
    process = start(url=proxy.url, assume_timeout="1s")
    writer.create_many(our_node(f"node-{i}", cpu=1) for i in range(n_pods // 20))
    _await_watches(writer)
    proxy.lag_open_connections(3.0)
    made = writer.create_many(our_pod(f"lag-{i}", cpu="100m") for i in range(n_pods))
    assert eventually(lambda: bound(writer, "lag") == n_pods // 2), process.log[-3000:]
    nodes = assert_settled(writer, [process])
    assert "the API server is asked" in process.log
    # Room that is free comes to be known as late as everything else.
    writer.delete_many(one for one in made if nodes[one["metadata"]["name"]])
    assert eventually(lambda: bound(writer) == n_pods // 2), process.log[-3000:]
    assert all(assert_settled(writer, [process]).values())


def _await_watches(writer: ClusterWriter) -> None:
    """They are up once a pod has been bound that came after the lists."""
    first = writer.create(our_pod("first"))
    assert eventually(lambda: bound(writer, "first") == 1)
    writer.delete(first)


def _burst(writer: ClusterWriter, n_pods: int) -> None:
    """Pods, and nodes that they fill to the last bit."""
    writer.create_many(our_node(f"node-{i}", cpu=2) for i in range(n_pods // 20))
    owner = writer.create(replica_set("burst-7d9f", deployment="burst"))
    writer.create_many(our_pod(f"burst-{i}", cpu="100m", owner=owner) for i in range(n_pods))
