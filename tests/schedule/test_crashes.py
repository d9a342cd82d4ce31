"""kill -9 at the worst moments: whoever starts next finds everything in the API server, and finishes it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from testing.clusters.own_nodes import LONG, assert_settled, bound, our_node, our_pod
from testing.processes.scorer_process import eventually
from testing.servers.cluster_objects import ClusterWriter, replica_set
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
