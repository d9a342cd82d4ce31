"""An empty control plane per file; every test begins with an empty cluster and starts schedulers of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from testing.clusters.own_nodes import end_terminating, groups, settings_of_schedule
from testing.processes.scorer_process import ScorerProcess
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.servers.control_plane.tcp_proxy import TcpProxy

Started = Callable[..., ScorerProcess]

_LEFT = ("jobs", "pods", "nodes", "replicasets", "poddisruptionbudgets", "resourceclaims", "resourceslices")


@pytest.fixture(scope="module")
def module_plane() -> Iterator[ControlPlane]:
    with control_plane() as running, Api(running) as api, ClusterWriter(running) as writer:
        for path, manifest in shipped("crds/podgroups/podgroups.yaml"):
            api.request("POST", path, manifest)
        writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "forecast-scheduler"}})
        for priority in (10, 100):
            name = {"name": f"priority-{priority}"}
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
            writer.create(kind | {"metadata": name, "value": priority})
        yield running


@pytest.fixture
def plane(module_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Up when a test begins; afterwards it is up again, and empty."""
    yield module_plane
    module_plane.api_server.start()
    with ClusterWriter(module_plane) as writer, groups(module_plane) as those:
        for plural in _LEFT:
            writer.delete_many(writer.list_all(plural))
        end_terminating(writer)
        those.delete_all()


@pytest.fixture
def writer(plane: ControlPlane) -> Iterator[ClusterWriter]:
    with ClusterWriter(plane) as writer:
        yield writer


@pytest.fixture
def proxy(plane: ControlPlane) -> Iterator[TcpProxy]:
    """Its lag may be changed, of watches that are open and of what begins later apart."""
    with TcpProxy(plane.api_server.port, lag_seconds=0.001) as running:
        yield running


@pytest.fixture
def start(plane: ControlPlane, tmp_path: Path) -> Iterator[Started]:
    """start(url=of a proxy, **settings of `schedule`) -> a scheduler that is ready, without ready=False."""
    with ExitStack() as running:
        number = iter(range(100))

        def start(
            url: str = "",
            kubeconfig: Path | None = None,
            ready: bool = True,
            environment: Mapping[str, str] | None = None,
            **schedule: Any,
        ) -> ScorerProcess:
            kubeconfig = kubeconfig or plane.write_kubeconfig("admin", plane.token, url=url)
            process = ScorerProcess(
                tmp_path / f"schedule-{next(number)}",
                "--kubeconfig",
                kubeconfig,
                settings=settings_of_schedule(**schedule),
                ready=ready,
                command="schedule",
                environment=environment,
                forked=True,
            )
            return running.enter_context(process)

        yield start
