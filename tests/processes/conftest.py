"""One API server, one Prometheus and one cluster for all tests here; every test has scorers of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from testing.processes.scenery import Scenery, publish, scenery, usage_rules
from testing.processes.scorer_process import ScorerProcess
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.servers.prometheus import PrometheusServer

Started = Callable[..., ScorerProcess]


@pytest.fixture(scope="session")
def process_plane() -> Iterator[ControlPlane]:
    with control_plane() as running:
        yield running


@pytest.fixture(scope="session")
def cluster(process_plane: ControlPlane) -> Scenery:
    with ClusterWriter(process_plane) as writer:
        return scenery(writer)


@pytest.fixture
def plane(process_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Up when a test begins, and up again when it ends."""
    process_plane.api_server.start()
    yield process_plane
    process_plane.api_server.start()


@pytest.fixture
def writer(plane: ControlPlane) -> Iterator[ClusterWriter]:
    with ClusterWriter(plane) as writer:
        yield writer


@pytest.fixture(scope="session")
def prometheus(cluster: Scenery, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    directory = tmp_path_factory.mktemp("prometheus")
    rules = usage_rules(directory / "usage.yaml", cluster.truth)
    with PrometheusServer(directory / "data", rule_files=[rules]) as server:
        yield server


@pytest.fixture
def models(cluster: Scenery, tmp_path: Path) -> Path:
    """A registry with a model of today."""
    directory = tmp_path / "models"
    publish(directory, cluster.truth)
    return directory


@pytest.fixture
def start(plane: ControlPlane, cluster: Scenery, models: Path, tmp_path: Path) -> Iterator[Started]:
    """start(...) -> a scorer that is ready; arguments are those of ScorerProcess and replace the usual ones; forked."""
    with ExitStack() as running:
        number = iter(range(100))

        def start(*arguments: str | Path, kubeconfig: Path | None = None, **rest: Any) -> ScorerProcess:
            usual: list[str | Path] = ["--kubeconfig", kubeconfig or plane.kubeconfig, "--models", models]
            directory = tmp_path / f"scorer-{next(number)}"
            return running.enter_context(ScorerProcess(directory, *usual, *arguments, **{"forked": True} | rest))

        yield start
