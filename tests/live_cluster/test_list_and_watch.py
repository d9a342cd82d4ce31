"""The source against a real API server that works: what it lists and sends is what the sink holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from base.backoff import Backoff
from forecast.service_key import Owner
from kube.client.api_server_version import OPENAPI_PATH, ApiServerVersion, unknown_fields
from kube.client.kubernetes_client import api_client, send
from kube.client.kubernetes_contract import Sink, Timing
from kube.client.kubernetes_source import KubernetesSource
from kube.decoding.decoding import Kind
from kube.decoding.jobs import JobInfo
from kube.objects.kubernetes_version import KubernetesVersion
from kube.objects.objects import NodeInfo, PodInfo, ReplicaSetInfo
from testing.servers.cluster_objects import ClusterWriter, job, node, pod, replica_set, running
from testing.servers.control_plane.binaries import kubernetes_version
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.live_cluster.stored_objects import StoredObjects

QUICK = Timing(backoff=Backoff(longest=0.5))


@contextmanager
def started(
    plane: ControlPlane, sink: Sink, *, page_size: int = 500, timing: Timing = QUICK
) -> Iterator[KubernetesSource]:
    source = KubernetesSource(api_client(plane.kubeconfig), sink, page_size=page_size, timing=timing)
    source.start()
    try:
        yield source
    finally:
        source.stop()


def test_what_exists_is_listed_in_pages_and_every_change_arrives(plane: ControlPlane, writer: ClusterWriter) -> None:
    writer.create_many(node(f"listed-{i}") for i in range(30))
    writer.create_many(pod(f"listed-{i}", node=f"listed-{i % 30}") for i in range(60))
    replicas = writer.create(replica_set("shop-7d9f8b6c5d", deployment="shop", revision=4, desired_replicas=9))
    writer.create(job("night-29000000", cron_job="night"))
    sink = StoredObjects()
    with started(plane, sink, page_size=7) as source:
        assert source.wait_synced(10)
        assert sink.equals_server(writer)
        night = sink.get(Kind.JOBS, "night-29000000")
        assert isinstance(night, JobInfo) and night.owner == Owner("CronJob", "night")
        writer.patch(replicas, {"metadata": {"annotations": {"deployment.kubernetes.io/desired-replicas": "12"}}})
        machine = writer.create(node("live", cpu="8"))
        created = writer.create(pod("live"))
        writer.bind("live", "live")
        writer.patch_status(created, running("2026-02-03T04:05:06Z"))
        writer.patch_status(machine, {"capacity": {"cpu": "6"}})

        def pod_started() -> bool:
            info = sink.get(Kind.PODS, "live")
            return isinstance(info, PodInfo) and info.node == "live" and info.started is not None

        def capacity_changed() -> bool:
            info = sink.get(Kind.NODES, "live")
            return isinstance(info, NodeInfo) and info.capacity["cpu"] == 6

        def scaled() -> bool:
            info = sink.get(Kind.REPLICA_SETS, "shop-7d9f8b6c5d")
            return isinstance(info, ReplicaSetInfo) and (info.revision, info.desired_replicas) == (4, 12)

        assert eventually(pod_started) and eventually(capacity_changed) and eventually(scaled)
        assert sink.equals_server(writer)
        writer.delete(created)
        writer.delete(machine)
        assert eventually(lambda: not sink.names(Kind.PODS) & {"live"} and not sink.names(Kind.NODES) & {"live"})
        assert sink.equals_server(writer)
        assert source.status()[Kind.PODS].relists == 0


def test_the_server_says_its_version_and_has_no_field_that_is_not_known(plane: ControlPlane) -> None:
    api, said = api_client(plane.kubeconfig), list[KubernetesVersion]()
    version = ApiServerVersion(api, said.append).read()
    assert said == [version] and str(version) == kubernetes_version()
    assert unknown_fields(send(api, "GET", OPENAPI_PATH, seconds=30.0).body) == []


def test_a_server_that_lost_its_memory_is_listed_again(plane: ControlPlane, writer: ClusterWriter) -> None:
    """As after etcd is restored from a backup: resource versions begin again, below the one the watch resumes from."""
    writer.create_many(pod(f"lost-{i}") for i in range(60))
    sink = StoredObjects()
    with started(plane, sink, timing=replace(QUICK, watch_read_seconds=1.0)) as source:
        assert source.wait_synced(10)
        known = int(source.status()[Kind.PODS].resource_version)
        plane.api_server.kill()
        plane.etcd.wipe()
        plane.api_server.start()
        with ClusterWriter(plane) as restarted:
            created = restarted.create(pod("first"))
            assert int(created["metadata"]["resourceVersion"]) < known
            assert eventually(lambda: sink.equals_server(restarted))
            assert sink.names(Kind.PODS) == {"first"}
