"""Nodes shared with a real kube-scheduler on a real API server: overcommits are counted, and repaired at our cost only.

There is no kubelet: a pod that is evicted stays, terminating, until the test ends it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_client import CollectorRegistry

from kube.client.kubernetes_client import api_client
from kube.client.kubernetes_source import KubernetesSource
from kube.decoding.decoding import SCORED_KINDS
from kube.events.event_recorder import api_server_post
from kube.eviction.eviction import api_server_evict
from kube.objects.quantity import parse_quantity
from placement.index.index import INDEXED_KINDS, PlacementIndex
from scheduler.overcommit.repair_loop import RepairLoop, RepairLoopOptions
from scorer.scorer import Scorer
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod, replica_set, running
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from tests.cluster.stored_objects import eventually

OURS = "forecast-scheduler"
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


@pytest.fixture(scope="module")
def kube_scheduler(plane: ControlPlane) -> Iterator[KubeScheduler]:
    with KubeScheduler(plane) as running_beside_us:
        yield running_beside_us


class Sharing:
    """Our side of the shared nodes: tables that follow the server, the watch and the repair."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane, self.api = plane, api_client(plane.kubeconfig)
        scorer = Scorer()
        with scorer.tables.reading() as cluster:
            self._index = PlacementIndex(cluster.state)
            scorer.tables.attach(INDEXED_KINDS, self._index)
        self._source = KubernetesSource(self.api, scorer.tables, kinds=(*SCORED_KINDS, *INDEXED_KINDS))
        self.both = RepairLoop(
            scorer.tables,
            self._index.labels,
            RepairLoopOptions(scheduler_names=(OURS,), domain=OURS, shared=("",), instance="test"),
            evict=api_server_evict(self.api),
            post=api_server_post(self.api),
            after=lambda: self._source.synced,
        )
        self._registry = CollectorRegistry()
        self._registry.register(self.both.collector)

    def metric(self, name: str, **labels: str) -> float:
        """As Prometheus would read it."""
        return self._registry.get_sample_value(name, labels) or 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        self._source.start()
        self.both.start()
        try:
            yield
        finally:
            self.both.stop()
            self._source.stop()


@pytest.fixture
def sharing(plane: ControlPlane) -> Iterator[Sharing]:
    made = Sharing(plane)
    with made.running():
        yield made
    made.api.rest_client.pool_manager.clear()


def requested(pods: list[Manifest]) -> int:
    """Milli-cores."""
    containers = [one for manifest in pods for one in manifest["spec"]["containers"]]
    return sum(round(1000 * parse_quantity(one["resources"]["requests"]["cpu"])) for one in containers)


def on(writer: ClusterWriter, name: str) -> list[Manifest]:
    return writer.list_all("pods", field_selector=f"spec.nodeName={name}")


def end_evicted(writer: ClusterWriter) -> bool:
    """What kubelets do. True: it is done."""
    writer.delete_many([one for one in writer.list_all("pods") if "deletionTimestamp" in one["metadata"]])
    return True


def start_on(writer: ClusterWriter, name: str, on_node: str) -> None:
    """Bind a pod and let it run."""
    writer.bind(name, on_node)
    writer.patch_status(pod(name), running() | READY)


def test_both_place_at_once(
    plane: ControlPlane, writer: ClusterWriter, kube_scheduler: KubeScheduler, sharing: Sharing
) -> None:
    """Each by what it saw: we bind as if the nodes were ours, while kube-scheduler fills them."""
    names = [f"both-{i}" for i in range(4)]
    writer.create_many(node(name, cpu="4", reserved_cpu="0m") for name in names)
    owner = writer.create(replica_set("both-7d9f", deployment="both"))
    writer.create_many(pod(f"mine-{i}", owner=owner, cpu="500m", scheduler_name=OURS) for i in range(20))
    theirs = writer.create_many(pod(f"theirs-{i}", owner=owner, cpu="600m") for i in range(12))
    assert eventually(lambda: sum(requested(on(writer, name)) for name in names) == 7200, 60), "kube-scheduler is slow"

    def place(number: int) -> None:
        if number % 5 == 0:
            theirs.append(writer.create(pod(f"theirs-late-{number}", owner=owner, cpu="600m")))
        start_on(writer, f"mine-{number}", names[number % 4])

    writer.in_parallel(place, range(20))

    def all_settled() -> bool:
        end_evicted(writer)
        return not sharing.both.watch.standing and all(requested(on(writer, name)) <= 4000 for name in names)

    # 10 cores of ours and 7.2 of theirs on 16: some node must be overcommitted, whoever comes when.
    assert eventually(lambda: sharing.metric("forecast_overcommits_total", cause="shared") > 0, 60)
    assert eventually(all_settled, 60)
    left = {one["metadata"]["name"] for one in writer.list_all("pods")}
    assert {one["metadata"]["name"] for one in theirs} <= left, "pods of others are never evicted"
    n_evicted = 20 - sum(name.startswith("mine-") for name in left)
    assert n_evicted > 0
    assert eventually(lambda: sharing.metric("forecast_overcommit_evictions_total", outcome="evicted") == n_evicted)
    assert sharing.metric("forecast_overcommits_total", cause="own") == 0
    assert sharing.metric("forecast_overcommitted_nodes", cause="shared") == 0
