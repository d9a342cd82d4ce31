"""Two replicas and one Lease: whoever leads binds, and a leader that was away for too long binds nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from testing.clusters.own_nodes import QUICK_LEASE, assert_settled, bound, our_node, our_pod, reported
from testing.processes.scorer_process import ScorerProcess
from testing.servers.cluster_objects import ClusterWriter, replica_set
from testing.waiting import eventually
from tests.schedule.conftest import Started

N_PODS = 400


def test_another_takes_over_from_a_leader_that_was_killed_in_a_burst(writer: ClusterWriter, start: Started) -> None:
    leader, other = _two(start, leader_election=QUICK_LEASE, bindings_in_flight=4)
    with ThreadPoolExecutor(1) as threads:
        made = threads.submit(_fill, writer, N_PODS)
        assert eventually(lambda: leader.metric("forecast_pod_scheduling_seconds_count") > 0), leader.log
        leader.kill()
        assert bound(writer) < N_PODS, "it was not killed in the middle"
        made.result()
    assert eventually(lambda: bound(writer) == N_PODS), other.log
    assert all(assert_settled(writer, [other]).values())


@pytest.mark.long
def test_a_leader_that_was_stopped_binds_nothing_by_what_it_saw_before(writer: ClusterWriter, start: Started) -> None:
    """While it stands still the other gives the room to pods that matter more: what the first had decided and not bound
    would be too much on every node."""
    leader, other = _two(start, leader_election=QUICK_LEASE, bindings_in_flight=1, preemption={"enabled": False})
    with ThreadPoolExecutor(1) as threads:
        made = threads.submit(_fill, writer, N_PODS)
        assert eventually(lambda: leader.metric("forecast_pod_scheduling_seconds_count") > 0), leader.log
        with leader.standing_still():
            made.result()
            n_before = bound(writer)
            assert n_before < N_PODS, "it was not stopped in the middle"
            writer.create_many(our_pod(f"later-{i}", cpu="100m", priority=100) for i in range(N_PODS))
            assert eventually(lambda: bound(writer) == N_PODS), other.log
    assert eventually(lambda: leader.metric("forecast_leader") == 0), leader.log
    nodes = assert_settled(writer, [leader, other])
    assert sum(1 for node in nodes.values() if node) == N_PODS
    for one in (leader, other):
        assert reported(one, "forecast_overcommits_total", cause="own") == 0


def _two(start: Started, **settings: object) -> tuple[ScorerProcess, ScorerProcess]:
    """The one that leads, and one that waits for its turn."""
    leader = start(**settings)
    assert eventually(lambda: leader.metric("forecast_leader") == 1), leader.log
    other = start(**settings)
    assert leader.metric("forecast_leader") == 1 and other.metric("forecast_leader") == 0
    return leader, other


def _fill(writer: ClusterWriter, n_pods: int) -> None:
    """As many nodes as these pods fill to the last bit."""
    writer.create_many(our_node(f"node-{i}", cpu=2) for i in range(n_pods // 20))
    owner = writer.create(replica_set("burst-7d9f", deployment="burst"))
    writer.create_many(our_pod(f"burst-{i}", cpu="100m", owner=owner) for i in range(n_pods))
