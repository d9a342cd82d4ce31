"""kill -9 at the worst moments: whoever starts next finds everything in the API server, and finishes it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from testing.clusters.own_nodes import LONG, assert_settled, bound, group, groups, member, nodes_of, our_node, our_pod
from testing.processes.scorer_process import eventually
from testing.servers.cluster_objects import ClusterWriter, replica_set
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.tcp_proxy import TcpProxy
from tests.schedule.conftest import Started

N_BURST = 2000


def test_killed_in_the_middle_of_a_burst(writer: ClusterWriter, start: Started) -> None:
    """The nodes have room for all and for no more: one pod that is counted twice or lost would be seen."""
    per_node = 100
    writer.create_many(our_node(f"node-{i}", cpu=per_node // 10) for i in range(N_BURST // per_node))
    owner = writer.create(replica_set("burst-7d9f", deployment="burst"))
    first = start()
    with ThreadPoolExecutor(1) as threads:
        pods = (our_pod(f"burst-{i}", cpu="100m", owner=owner) for i in range(N_BURST))
        made = threads.submit(writer.create_many, pods)
        assert eventually(lambda: first.metric("forecast_pod_scheduling_seconds_count") >= N_BURST / 4, LONG), first.log
        first.kill()
        assert N_BURST / 4 <= bound(writer) < N_BURST, "it was not killed in the middle"
        second = start()
        assert len(made.result()) == N_BURST
    assert eventually(lambda: bound(writer) == N_BURST, LONG), second.log[-3000:]
    assert all(assert_settled(writer, [second]).values())


@pytest.mark.long
def test_killed_in_the_middle_of_a_gang(
    plane: ControlPlane, writer: ClusterWriter, start: Started, proxy: TcpProxy
) -> None:
    """Members that had a node count, and stay where they were."""
    n_members = 30
    writer.create_many(our_node(f"node-{i}", cpu=10) for i in range(3))
    with groups(plane) as those:
        those.create(group("train", members=n_members))
        first = start(url=proxy.url, bindings_in_flight=1)
        proxy.lag_new_connections(0.2)
        writer.create_many(member("train", number) for number in range(n_members))
        assert eventually(lambda: first.metric("forecast_pod_scheduling_seconds_count") > 0, LONG), first.log
        first.kill()
        before = {name: node for name, node in nodes_of(writer).items() if node}
        assert 0 < len(before) < n_members, "it was not killed in the middle"
        second = start()
        assert eventually(lambda: bound(writer) == n_members, LONG), second.log
        after = assert_settled(writer, [second])
        assert {name: after[name] for name in before} == before
        assert eventually(lambda: those.status("train").get("scheduled") == n_members, LONG), those.status("train")
