"""A real kube-scheduler at work on the same API server: beside us on nodes of its own, and on nodes that both share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testing.clusters.own_nodes import (
    assert_settled,
    bound,
    end_terminating,
    our_pod,
    overcommitted,
    reported,
)
from testing.processes.shipped_schedule import documents
from testing.servers.cluster_objects import ClusterWriter, node, pod, replica_set
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.control_plane.tcp_proxy import TcpProxy
from testing.waiting import eventually
from tests.schedule.conftest import Started


@pytest.fixture
def kube_scheduler(plane: ControlPlane) -> Iterator[KubeScheduler]:
    """With the profiles that we ship for it: its pods stay off our nodes."""
    (shipped,) = documents("kube-scheduler/beside-own-loops.yaml")
    with KubeScheduler(plane, profiles=shipped["profiles"]) as running:
        yield running


def test_both_fill_the_same_nodes_and_what_is_too_much_is_counted_and_repaired(
    plane: ControlPlane, writer: ClusterWriter, start: Started
) -> None:
    """We learn of its pods seconds late, so that both give away the same room."""
    names = [f"both-{i}" for i in range(4)]
    writer.create_many(node(name, cpu="4", reserved_cpu="0m") for name in names)
    owner = writer.create(replica_set("both-7d9f", deployment="both"))
    with KubeScheduler(plane), TcpProxy(plane.api_server.port, lag_seconds=0.001) as behind:
        process = start(url=behind.url, share_nodes=[""])
        first = writer.create(our_pod("mine-first"))
        assert eventually(lambda: bound(writer, "mine") == 1), process.log  # the watches are up
        writer.delete(first)
        behind.lag_open_connections(5.0)
        mine = [our_pod(f"mine-{i}", cpu="500m", owner=owner) for i in range(24)]
        theirs = [pod(f"theirs-{i}", cpu="600m", owner=owner) for i in range(12)]
        writer.create_many([*mine, *theirs])
        seen: set[str] = set()

        def repaired() -> bool:
            """No kubelet is there to end those that were evicted."""
            pods, nodes = writer.list_all("pods"), writer.list_all("nodes")
            now = overcommitted(pods, nodes)
            if now and not seen:
                behind.cut()  # on new connections it hears all of it
            seen.update(now)
            if now and reported(process, "forecast_overcommits_total", cause="shared") > 0:
                end_terminating(writer)
            return bool(seen) and not now and reported(process, "forecast_overcommitted_nodes", cause="shared") == 0

        assert eventually(repaired), (seen, process.log[-3000:])
        assert reported(process, "forecast_overcommits_total", cause="shared") >= len(seen)
        assert process.metric("forecast_overcommits_unrepaired") == 0
        end_terminating(writer)
        assert eventually(lambda: bound(writer, "theirs") == len(theirs)), "a pod of theirs was evicted"
        nodes = assert_settled(writer, [process], shared=names)
        n_evicted = len(mine) - len(nodes)
        assert n_evicted > 0
        assert reported(process, "forecast_overcommit_evictions_total", outcome="evicted") >= n_evicted
