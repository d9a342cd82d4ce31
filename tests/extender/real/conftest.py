"""A control plane per test file, with five nodes whose names the made-up extender has opinions about."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from testing.servers.cluster_objects import ClusterWriter, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.control_plane.pool import control_plane

NODES = ("plain", "good", "bad", "hot", "gpu")
QUICK = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running, ClusterWriter(running) as writer:
        writer.create_many(node(name) for name in NODES)
        yield running


@pytest.fixture
def writer(plane: ControlPlane) -> Iterator[ClusterWriter]:
    with ClusterWriter(plane) as writer:
        yield writer
        writer.delete_many(writer.list_all("pods"))


def placed(writer: ClusterWriter, scheduler: KubeScheduler, names: list[str], seconds: float = 60) -> dict[str, str]:
    """Create pods and wait until all have a node: name -> node."""
    writer.create_many(pod(name) for name in names)
    return wait_until_placed(writer, scheduler, names, seconds)


def wait_until_placed(
    writer: ClusterWriter, scheduler: KubeScheduler, names: list[str], seconds: float = 60
) -> dict[str, str]:
    """Name -> node, once all have one."""
    deadline = time.monotonic() + seconds
    while True:
        found = {p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in writer.list_all("pods")}
        nodes = {name: found.get(name, "") for name in names}
        if all(nodes.values()):
            return nodes
        assert time.monotonic() < deadline, f"not placed: {nodes}; {scheduler.end_of_log()}"
        time.sleep(0.05)
