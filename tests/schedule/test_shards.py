"""Several replicas place at once, each on its own nodes: real processes, one real API server."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from testing.clusters.own_nodes import (
    QUICK_LEASE,
    assert_settled,
    bound,
    group,
    groups,
    member,
    our_node,
    our_pod,
    reported,
)
from testing.processes.scorer_process import ScorerProcess
from testing.servers.cluster_objects import ClusterWriter, replica_set
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.schedule.conftest import Started

SHARDS: Final[dict[str, Any]] = {"enabled": True, "count": 8}
N_NODES: Final = 20
N_PODS: Final = 400
"""As many as fill the nodes to the last bit."""


@pytest.mark.parametrize("n_killed", [pytest.param(0, marks=pytest.mark.long), 1])
def test_the_shards_of_a_replica_that_was_killed_in_a_burst_are_taken_over(
    writer: ClusterWriter, start: Started, n_killed: int
) -> None:
    replicas = _sharing(start, 3, bindings_in_flight=4)
    with ThreadPoolExecutor(1) as threads:
        made = threads.submit(_fill, writer)
        assert eventually(lambda: bound(writer) > N_PODS / 8), _logs(replicas)
        killed = replicas.pop(n_killed)
        killed.kill()
        assert bound(writer) < N_PODS, "it was not killed in the middle"
        made.result()
    assert eventually(lambda: bound(writer) == N_PODS), _logs(replicas)
    assert sum(one.metric("forecast_shards_taken_over_total") for one in replicas) > 0
    assert_settled(writer, replicas)
    _assert_sound(replicas)


@pytest.mark.long
def test_a_replica_that_stood_still_binds_nothing_on_nodes_that_others_have_now(
    writer: ClusterWriter, start: Started
) -> None:
    replicas = _sharing(start, 2, bindings_in_flight=1)
    with ThreadPoolExecutor(1) as threads:
        made = threads.submit(_fill, writer)
        assert eventually(lambda: bound(writer) > N_PODS / 8), _logs(replicas)
        with replicas[0].standing_still():
            made.result()
            assert bound(writer) < N_PODS, "it was not stopped in the middle"
            assert eventually(lambda: bound(writer) == N_PODS), replicas[1].log
    assert eventually(lambda: replicas[0].metric("forecast_shards_owned") > 0), replicas[0].log
    assert_settled(writer, replicas)
    _assert_sound(replicas)


@pytest.mark.long
def test_a_gang_that_fits_only_on_the_nodes_of_all_borrows_them(
    writer: ClusterWriter, start: Started, plane: ControlPlane
) -> None:
    replicas = _sharing(start, 2)
    writer.create_many(our_node(f"node-{i}", cpu=1) for i in range(8))
    _wait_until_seen(replicas, 8)
    with groups(plane) as those:
        those.create(group("gang", members=8))
        writer.create_many(member("gang", i, cpu="900m") for i in range(8))
        assert eventually(lambda: bound(writer) == 8), _logs(replicas)
    assert sum(reported(one, "forecast_shard_nodes_handed_over_total", why="loan") for one in replicas) > 0
    assert eventually(lambda: not _borrowed(writer)), _borrowed(writer)
    assert_settled(writer, replicas)
    _assert_sound(replicas)


@pytest.mark.long
def test_a_replica_with_another_number_of_shards_places_nothing(writer: ClusterWriter, start: Started) -> None:
    (first,) = _sharing(start, 1)
    writer.create_many(our_node(f"node-{i}") for i in range(4))
    other = start(ready=False, leader_election=QUICK_LEASE, shards=SHARDS | {"count": 4})
    assert eventually(lambda: other.metric("forecast_shard_trouble") == 1), other.log
    writer.create_many(our_pod(f"pod-{i}") for i in range(8))
    assert eventually(lambda: bound(writer) == 8), first.log
    assert other.metric("forecast_shards_owned") == 0
    assert "schedule.shards.count" in other.log
    assert first.terminate() == 0
    assert eventually(lambda: other.metric("forecast_shards_owned") == 4), other.log


# Helpers


def _sharing(start: Started, n: int, **settings: Any) -> list[ScorerProcess]:
    settings = {"leader_election": QUICK_LEASE, "shards": SHARDS} | settings
    replicas = [start(ready=False, **settings) for _ in range(n)]
    _wait_until_shared(replicas)
    return replicas


def _wait_until_shared(replicas: Sequence[ScorerProcess]) -> None:
    """Each of them owns some shards, and none is free."""

    def are_shared() -> bool:
        owned = [one.metric("forecast_shards_owned") for one in replicas]
        return min(owned) > 0 and sum(owned) == SHARDS["count"]

    assert eventually(are_shared), _logs(replicas)
    assert eventually(lambda: sum(one.metric("forecast_leader") for one in replicas) == 1), _logs(replicas)


def _wait_until_seen(replicas: Sequence[ScorerProcess], n_nodes: int) -> None:
    for one in replicas:
        seen = lambda one=one: one.get("/v1/status")["nodes"] >= n_nodes  # noqa: E731
        assert eventually(seen), one.log


def _fill(writer: ClusterWriter) -> None:
    writer.create_many(our_node(f"node-{i}", cpu=2) for i in range(N_NODES))
    owners = [writer.create(replica_set(f"service-{i}-7d9f", deployment=f"service-{i}")) for i in range(8)]
    large = writer.create(replica_set("large-7d9f", deployment="large"))
    # Small services and the large one by turns.
    owner_of = [large if i % 2 else owners[i // 2 % 8] for i in range(N_PODS)]
    writer.create_many(our_pod(f"pod-{i}", cpu="100m", owner=owner) for i, owner in enumerate(owner_of))


def _borrowed(writer: ClusterWriter) -> list[str]:
    key = "forecast-scheduler.io/shard-handed-over"
    records = {
        one["metadata"]["name"]: one["metadata"].get("annotations", {}).get(key) for one in writer.list_all("nodes")
    }
    return [name for name, record in records.items() if record and '"home":-1' not in record]


def _assert_sound(replicas: Sequence[ScorerProcess]) -> None:
    for one in replicas:
        assert reported(one, "forecast_overcommits_total", cause="own") == 0
        assert "Traceback" not in one.log, one.log


def _logs(replicas: Sequence[ScorerProcess]) -> str:
    return "\n\n".join(one.log[-4000:] for one in replicas)
