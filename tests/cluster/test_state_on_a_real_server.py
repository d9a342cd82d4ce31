"""The live tables behind the source, while everything happens at once: the tables equal what the API server has."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Sequence

import pytest

from forecast.service_key import ServiceKey
from kube.client.kubernetes_client import api_client
from kube.client.kubernetes_contract import Timing
from kube.client.kubernetes_source import KubernetesSource
from kube.client.kubernetes_steps import Backoff
from kube.decoding.decoding import ApiObject, Kind, decode_list
from kube.objects.objects import NodeInfo, PodInfo
from kube.tables.self_check import self_check
from scorer.live_tables import LiveTables
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod, replica_set, running
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.tcp_proxy import TcpProxy
from testing.waiting import eventually

N_NODES = 12


def requested_cores(objects: Sequence[ApiObject]) -> dict[str, float]:
    """CPU that bound pods request, by node, summed from the API server's own list."""
    cores: dict[str, float] = {}
    for obj in objects:
        if isinstance(obj, PodInfo) and obj.node:
            cores[obj.node] = cores.get(obj.node, 0.0) + obj.requests.get("cpu", 0.0)
    return cores


def agrees(tables: LiveTables, writer: ClusterWriter) -> bool:
    """Whether the state holds the server's pods and nodes, and its columns their sums."""
    listed = {
        kind: decode_list(kind, json.dumps({"items": writer.list_all(kind.value)}).encode()).objects
        for kind in (Kind.NODES, Kind.PODS)
    }
    with tables.reading() as cluster:
        state = cluster.state
        pods = {obj.uid: obj for obj in listed[Kind.PODS] if isinstance(obj, PodInfo)}
        nodes = {obj.name: obj for obj in listed[Kind.NODES] if isinstance(obj, NodeInfo)}
        if state.pods != pods or {n.name: n for n in state.nodes if n is not None} != nodes:
            return False
        cores = requested_cores(listed[Kind.PODS])
        return all(
            state.requested[row, state.kinds["cpu"]] == pytest.approx(cores.get(name, 0.0))
            for name, row in state.row_of.items()
        )


def is_consistent(tables: LiveTables) -> bool:
    with tables.reading() as cluster:
        return self_check(cluster.state) == ()


def knows(tables: LiveTables, replicas: Manifest) -> bool:
    with tables.reading() as cluster:
        return replicas["metadata"]["uid"] in cluster.state.replica_sets


class Churn:
    """Pods of two Deployments, bare pods and a node that come, are bound, run and go until told to stop."""

    def __init__(self, prefix: str, writer: ClusterWriter, owners: Sequence[Manifest]) -> None:
        self._prefix, self._writer, self._owners, self._enough = prefix, writer, owners, threading.Event()
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._guarded, args=(seed,)) for seed in range(3)]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *unused: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join(10)
        assert not self.errors

    def _guarded(self, seed: int) -> None:
        try:
            self._run(random.Random(seed), seed)
        except BaseException as error:
            self.errors.append(error)

    def _run(self, rng: random.Random, seed: int) -> None:
        alive: list[Manifest] = []
        count = 0
        while not self._enough.is_set():
            what = rng.random()
            if alive and what < 0.4:
                self._writer.delete(alive.pop(rng.randrange(len(alive))))
            elif alive and what < 0.55:
                self._writer.patch_status(rng.choice(alive), running())
            elif what < 0.6 and seed == 0:
                self._writer.delete(node("coming-and-going"))
                self._writer.create(node("coming-and-going"))
            else:
                name = f"{self._prefix}-{seed}-{count}"
                owner = rng.choice([*self._owners, None])
                created = self._writer.create(pod(name, owner=owner, cpu=f"{rng.randrange(1, 2000)}m"))
                if rng.random() < 0.8:
                    self._writer.bind(name, f"node-{rng.randrange(N_NODES)}")
                alive.append(created)
                count += 1


def test_tables_stay_true_through_churn_cuts_and_a_killed_server(plane: ControlPlane, writer: ClusterWriter) -> None:
    writer.create_many(node(f"node-{i}") for i in range(N_NODES))
    owners = writer.create_many(
        replica_set(f"{name}-{i}a9f8b6c5d", deployment=name, revision=i + 1, desired_replicas=8)
        for name in ("cart", "shop")
        for i in range(2)
    )
    tables = LiveTables()
    timing = Timing(backoff=Backoff(first=0.05, longest=0.3))
    with TcpProxy(plane.api_server.port) as proxy:
        api = api_client(plane.write_kubeconfig("admin", plane.token, url=proxy.url))
        source = KubernetesSource(api, tables, page_size=10, timing=timing)
        source.start()
        try:
            with Churn("before", writer, owners):
                assert source.wait_synced(10)
                for _ in range(4):
                    before = source.status()[Kind.PODS].events
                    assert eventually(lambda before=before: source.status()[Kind.PODS].events > before + 60)  # type: ignore[misc]
                    proxy.cut()
            assert eventually(lambda: agrees(tables, writer))
            assert is_consistent(tables)
            plane.api_server.kill()
            plane.etcd.compact()
            plane.api_server.start()
            with ClusterWriter(plane) as restarted:
                with Churn("after", restarted, owners[:2]):
                    before = source.status()[Kind.PODS].events
                    assert eventually(lambda: source.status()[Kind.PODS].events > before + 100)
                restarted.delete(owners[3])
                assert eventually(lambda: agrees(tables, restarted))
            assert eventually(lambda: not knows(tables, owners[3]))
        finally:
            source.stop()
    assert is_consistent(tables)
    with tables.reading() as cluster:
        assert ServiceKey("default", "Deployment", "cart") in cluster.state.service_of
