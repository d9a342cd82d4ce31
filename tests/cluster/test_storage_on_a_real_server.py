"""Namespaces and storage objects: the real API server lists and sends them, and the index follows."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence

from kube.client.kubernetes_client import api_client, check_access
from kube.client.kubernetes_contract import Timing
from kube.client.kubernetes_source import KubernetesSource
from kube.client.kubernetes_steps import Backoff
from kube.decoding.decoding import SCORED_KINDS, ApiObject, Kind
from kube.objects.storage_objects import ClaimInfo, VolumeInfo
from placement.index.index import INDEXED_KINDS
from placement.index.storage import STORAGE_KINDS
from testing.servers.cluster_objects import ClusterWriter, Manifest, node
from testing.servers.control_plane.control_plane import ControlPlane
from tests.cluster.stored_objects import StoredObjects, eventually
from tests.placement.random_storage import random_storage, random_volumes
from tests.placement.storage_cluster import StorageCluster
from tests.placement.storage_manifests import pod
from tests.placement.test_volume_tables_follow import FILTERS

ALL_KINDS = (*SCORED_KINDS, *INDEXED_KINDS)
CHANGING = {"PersistentVolume", "PersistentVolumeClaim"}


class IndexedObjects(StoredObjects):
    """Keeps what it is told, and has an index follow it."""

    def __init__(self) -> None:
        super().__init__(ALL_KINDS)
        self.cluster, self.index_lock = StorageCluster(), threading.Lock()

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        super().replace(kind, objects)
        with self.index_lock:
            if kind in SCORED_KINDS:
                self.cluster.index.apply(self.cluster.state.replace(kind, objects))
            else:
                self.cluster.index.replace(kind, objects)

    def put(self, kind: Kind, obj: ApiObject) -> None:
        super().put(kind, obj)
        with self.index_lock:
            self.cluster.index.put(kind, obj)

    def delete(self, kind: Kind, obj: ApiObject) -> None:
        super().delete(kind, obj)
        with self.index_lock:
            self.cluster.index.delete(kind, obj)


def random_nodes(prefix: str) -> list[Manifest]:
    return [node(f"{prefix}{i}", labels={"topology.kubernetes.io/zone": "abc"[i % 3]}) for i in range(6)]


def test_storage_is_listed_watched_and_survives_a_killed_server(plane: ControlPlane, writer: ClusterWriter) -> None:
    rng = random.Random(5)
    nodes = random_nodes("st")
    writer.create_many(nodes)
    created = [writer.create(one) for one in random_storage(rng, nodes)]
    check_access(api_client(plane.kubeconfig), kinds=ALL_KINDS)
    sink = IndexedObjects()
    timing = Timing(backoff=Backoff(first=0.05, longest=0.3))
    api = api_client(plane.kubeconfig, connections=len(ALL_KINDS) + 1)
    source = KubernetesSource(api, sink, kinds=ALL_KINDS, page_size=5, timing=timing)
    source.start()
    try:
        assert source.wait_synced(15)
        assert sink.equals_server(writer)
        for kind in STORAGE_KINDS:
            if kind is not Kind.STORAGE_CAPACITIES:
                assert sink.names(kind), kind
        volume = next(one for one in created if one["metadata"]["name"].startswith("free-"))
        claim = next(one for one in created if one["metadata"]["name"] == "pending")
        writer.patch(claim, {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}})
        writer.patch(claim, {"spec": {"volumeName": volume["metadata"]["name"]}})
        writer.patch_status(volume, {"phase": "Bound"})

        def bound() -> bool:
            seen = sink.get(Kind.CLAIMS, "pending"), sink.get(Kind.VOLUMES, volume["metadata"]["name"])
            match seen:
                case (ClaimInfo(is_bound=True), VolumeInfo(is_available=False)):
                    return True
            return False

        assert eventually(bound)
        plane.api_server.kill()
        plane.etcd.compact()
        plane.api_server.start()
        with ClusterWriter(plane) as again:
            for one in created:
                if one["kind"] not in CHANGING and rng.random() < 0.5:
                    again.delete(one)
            assert eventually(lambda: sink.equals_server(again))
            anew = StorageCluster(
                {"kind": kind.singular} | one for kind in ALL_KINDS for one in again.list_all(kind.value)
            )
            for probe in (pod("probe", *random_volumes(rng, created)) for _ in range(40)):
                with sink.index_lock:
                    assert [sink.cluster.reasons(one, probe) for one in FILTERS] == [
                        anew.reasons(one, probe) for one in FILTERS
                    ]
    finally:
        source.stop()
