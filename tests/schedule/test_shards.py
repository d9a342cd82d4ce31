"""Several replicas place at once, each on its own nodes: real processes, one real API server."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from testing.clusters.own_nodes import LONG, QUICK_LEASE, assert_settled, bound, our_node, our_pod
from testing.processes.scorer_process import ScorerProcess, eventually
from testing.servers.cluster_objects import ClusterWriter, replica_set
from tests.schedule.conftest import Started

SHARDS: Final[dict[str, Any]] = {"enabled": True, "count": 8}
N_NODES = 40
N_PODS = 400


def test_two_replicas_share_the_nodes_and_place_all_pods(writer: ClusterWriter, start: Started) -> None:
    replicas = _sharing(start, 2)
    writer.create_many(our_node(f"node-{i}") for i in range(N_NODES))
    writer.create_many(our_pod(f"pod-{i}", cpu="100m") for i in range(N_PODS))
    assert eventually(lambda: bound(writer) == N_PODS, LONG), _logs(replicas)
    assert all(one.metric("forecast_pod_scheduling_seconds_count") > N_PODS / 8 for one in replicas)
    assert_settled(writer, replicas)


def _sharing(start: Started, n: int, **settings: Any) -> list[ScorerProcess]:
    """Replicas each of which owns some shards, and no shard is free."""
    settings = {"lease": QUICK_LEASE, "shards": SHARDS} | settings
    replicas = [start(ready=False, **settings) for _ in range(n)]
    owned = lambda: [one.metric("forecast_shards_owned") for one in replicas]  # noqa: E731
    assert eventually(lambda: min(owned()) > 0 and sum(owned()) == SHARDS["count"], LONG), _logs(replicas)
    return replicas


def _logs(replicas: list[ScorerProcess]) -> str:
    return "\n\n".join(str(one.log) for one in replicas)
