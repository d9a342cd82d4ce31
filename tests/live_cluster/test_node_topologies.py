"""NodeResourceTopologies on a real API server: with the definition that users install, and before that is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

import numpy as np
import pytest
import yaml

from admission.webhook.template_store import WEBHOOK_TIMING
from cluster.live_tables import LiveTables
from kube.client.kubernetes_client import api_client
from kube.client.kubernetes_source import KubernetesSource, ResourceSource
from kube.client.kubernetes_watcher import ResourceWatcher
from kube.decoding.decoding import Kind
from placement.node_rule_settings import DeviceOptions
from placement.topology.node_zones import NO_LAYOUT
from placement.topology.zone_decoding import PATH, node_resource_topologies
from placement.topology.zone_table import ZoneTable
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod, running
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.live_cluster.custom_resources import Answer, CustomResources
from tests.placement.topology.test_topology_doc import EXAMPLES

DEFINITION: Final[Manifest] = yaml.safe_load((Path(__file__).parent / "noderesourcetopologies.yaml").read_text())
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
EXAMPLE: Final = EXAMPLES["NodeResourceTopology"]
GPU: Final = "nvidia.com/gpu"
LONG: Final = 30.0


class World:
    """The table of zones as in a scheduler, but nothing that places pods."""

    def __init__(self, plane: ControlPlane) -> None:
        api = api_client(plane.kubeconfig)
        self.tables = LiveTables()
        with self.tables.reading() as cluster:
            self.zones = ZoneTable(cluster.state)
        self.tables.attach((), self.zones)
        watched = node_resource_topologies(DeviceOptions())
        self.watcher = ResourceWatcher(api, self.zones.news, watched, timing=WEBHOOK_TIMING)
        self.source = ResourceSource([self.watcher])
        self.cluster = KubernetesSource(api, self.tables, kinds=(Kind.NODES, Kind.PODS))
        self.resources, self.objects = CustomResources(plane), ClusterWriter(plane)

    def __enter__(self) -> Self:
        for part in (self.source, self.cluster):
            part.start()
        assert self.source.wait_synced(LONG) and self.cluster.wait_synced(LONG)
        return self

    def __exit__(self, *unused: object) -> None:
        for part in (self.cluster, self.source):
            part.stop()
        self.resources.__exit__()
        self.objects.close()

    def write(self, method: str, manifest: Manifest) -> Answer:
        name = "" if method == "POST" else f"/{manifest['metadata']['name']}"
        return self.resources.request(method, f"{PATH}{name}?fieldValidation=Strict", manifest)

    def delete(self, name: str) -> None:
        assert self.resources.request("DELETE", f"{PATH}/{name}").status == 200

    def left(self, name: str, kind: str = GPU) -> list[int] | None:
        """Whole units by zone; None = nothing is known of the node."""
        with self.tables.reading() as cluster:
            self.zones.catch_up()
            row = cluster.state.row_of.get(name)
            if row is None or not self.zones.is_single[row]:
                return None
            left = self.zones.left(np.array([row]))
            return [int(one) for one in left.units[0, left.there[0], left.kinds[kind]]]


@pytest.fixture(scope="module")
def world(plane: ControlPlane) -> Iterator[World]:
    with World(plane) as world:  # which is there before the definition is
        assert len(world.zones) == 0
        world.objects.create(node("gpu-1", cpu="64", extended={GPU: "8"}))
        answer = world.resources.request("POST", DEFINITIONS, DEFINITION)
        assert answer.status == 201, answer.message
        assert eventually(lambda: world.resources.request("GET", PATH).status == 200)
        yield world


def test_an_object_from_its_first_to_its_last(world: World) -> None:
    answer = world.write("POST", EXAMPLE)
    assert (answer.status, answer.warnings) == (201, ()), answer.message
    assert eventually(lambda: world.left("gpu-1") == [4, 3])
    assert world.left("gpu-1", "cpu") == [20_000, 31_000]
    with world.tables.reading() as cluster:
        layout = world.zones.layouts[int(world.zones.layout[cluster.state.row_of["gpu-1"]])]
    assert layout is not NO_LAYOUT and layout.nvlink == ((0, 1), (2, 3))

    asks = pod("two", requests={"cpu": "4", "memory": "1Gi", GPU: "2"}, limits={"cpu": "4", "memory": "1Gi", GPU: "2"})
    created = world.objects.create(asks)
    world.objects.bind("two", "gpu-1")
    assert eventually(lambda: world.left("gpu-1") == [2, 1]), "it may be in either"
    assert world.left("gpu-1", "cpu") == [16_000, 27_000], "it is Guaranteed"
    world.objects.patch_status(created, running())
    zones = [dict(zone) for zone in EXAMPLE["zones"]]
    zones[0]["resources"] = [{"name": GPU, "capacity": 4, "allocatable": 4, "available": 2}]
    assert eventually(lambda: world.left("gpu-1") == [4, 3]), "it started long ago"

    before = world.resources.request("GET", f"{PATH}/gpu-1").body
    published = before | {"zones": zones}
    assert world.write("PUT", published).status == 200
    assert eventually(lambda: world.left("gpu-1") == [2, 3])

    world.delete("gpu-1")
    assert eventually(lambda: world.left("gpu-1") is None and len(world.zones) == 0)
