"""The source while the API server dies, forgets, or the network fails: nothing lost, nothing listed without need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from kube.client.kubernetes_client import api_client
from kube.client.kubernetes_contract import Timing
from kube.client.kubernetes_source import KubernetesSource
from kube.client.kubernetes_steps import Backoff
from kube.decoding.decoding import Kind
from testing.servers.cluster_objects import ClusterWriter, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.tcp_proxy import TcpProxy
from tests.cluster.stored_objects import StoredObjects, eventually

QUICK = Timing(backoff=Backoff(first=0.05, longest=0.3))


@contextmanager
def behind_proxy(
    plane: ControlPlane, sink: StoredObjects, timing: Timing = QUICK
) -> Iterator[tuple[TcpProxy, KubernetesSource]]:
    """A source that is in sync and whose network the test controls."""
    with TcpProxy(plane.api_server.port) as proxy:
        kubeconfig = plane.write_kubeconfig("admin", plane.token, url=proxy.url)
        source = KubernetesSource(api_client(kubeconfig), sink, page_size=20, timing=timing)
        source.start()
        try:
            assert source.wait_synced(10)
            yield proxy, source
        finally:
            source.stop()


def test_history_compacted_behind_its_back_is_listed_again(plane: ControlPlane, writer: ClusterWriter) -> None:
    """Changes that no watch can deliver any more, among them deletions, are seen by the next list."""
    old = writer.create_many(pod(f"old-{i}") for i in range(30))
    sink = StoredObjects()
    with behind_proxy(plane, sink) as (proxy, source):
        proxy.refuse(True)
        writer.delete_many(old[:12])
        writer.create_many(pod(f"new-{i}") for i in range(25))
        plane.api_server.stop()
        plane.etcd.compact()
        plane.api_server.start()
        restarted = ClusterWriter(plane)
        proxy.refuse(False)
        assert eventually(lambda: sink.equals_server(restarted))
        assert source.status()[Kind.PODS].relists == 1
        assert not {f"old-{i}" for i in range(12)} & sink.names(Kind.PODS)
        restarted.close()


def test_a_silent_connection_is_given_up(plane: ControlPlane, writer: ClusterWriter) -> None:
    """After a router forgets a connection nothing ends it: only silence tells."""
    sink = StoredObjects()
    with behind_proxy(plane, sink, replace(QUICK, watch_read_seconds=1.0)) as (proxy, source):
        writer.create(pod("heard"))
        assert eventually(lambda: "heard" in sink.names(Kind.PODS))
        proxy.freeze()
        writer.create(pod("unheard"))
        assert eventually(lambda: "unheard" in sink.names(Kind.PODS))
        assert sink.equals_server(writer)
        assert source.status()[Kind.PODS].relists == 0


def test_a_server_that_lost_its_memory_is_listed_again(plane: ControlPlane, writer: ClusterWriter) -> None:
    """As after etcd is restored from a backup: resource versions begin again, below the one the watch resumes from."""
    writer.create_many(pod(f"lost-{i}") for i in range(60))
    sink = StoredObjects()
    with behind_proxy(plane, sink, replace(QUICK, watch_read_seconds=1.0)) as (_, source):
        known = int(source.status()[Kind.PODS].resource_version)
        plane.api_server.kill()
        plane.etcd.wipe()
        plane.api_server.start()
        with ClusterWriter(plane) as restarted:
            created = restarted.create(pod("first"))
            assert int(created["metadata"]["resourceVersion"]) < known
            assert eventually(lambda: sink.equals_server(restarted))
            assert sink.names(Kind.PODS) == {"first"}
