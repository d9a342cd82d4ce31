"""An empty control plane per test file: tests of one file may restart it, and find what earlier ones left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running:
        yield running


@pytest.fixture
def writer(plane: ControlPlane) -> Iterator[ClusterWriter]:
    writer = ClusterWriter(plane)
    yield writer
    writer.close()
