"""Wall clocks that jump while pods are placed: nothing is bound twice or lost, and no wait or age follows the jump."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

import pytest

from testing.clusters.own_nodes import (
    LONG,
    assert_settled,
    bound,
    our_node,
    our_pod,
    overcommitted,
    reported,
)
from testing.processes.scorer_process import ScorerProcess, eventually
from testing.servers.cluster_objects import ClusterWriter, replica_set
from testing.servers.control_plane.tcp_proxy import TcpProxy
from testing.servers.own_clock import DAY, HOUR, OwnClock
from tests.schedule.conftest import Started

_1970: Final = DAY
_2100: Final = 4_102_444_800.0
_MOST_CPU: Final = 0.9
"""Share of one core: a loop that has gone wild takes all of it, and resting takes a fifth with a clock of its own."""


def test_ages_and_waits_do_not_follow_a_clock_that_jumps(
    writer: ClusterWriter, start: Started, proxy: TcpProxy, tmp_path: Path
) -> None:
    """Failed before: a pod that was bound after a jump counted as one that had waited for an hour."""
    clock = OwnClock(tmp_path / "clock")
    scheduler = start(url=proxy.url, environment=clock.environment, bindings_in_flight=2)
    n_pods = _fill(writer, proxy, 120)
    for offset in (HOUR, -HOUR):
        assert bound(writer) < n_pods, "all were bound before the clock jumped"
        clock.set_to(offset)
    assert eventually(lambda: bound(writer) == n_pods, LONG), scheduler.log
    assert all(assert_settled(writer, [scheduler]).values())
    longest = scheduler.metric("forecast_pod_scheduling_seconds_sum")
    assert longest < n_pods * LONG, "a jump of the clock counts as time that pods waited"
    _assert_sound(scheduler)


@pytest.mark.long
def test_two_replicas_with_clocks_that_jump_far(
    writer: ClusterWriter, start: Started, proxy: TcpProxy, tmp_path: Path
) -> None:
    """Held before: the lease is held by a clock that cannot jump, and an assumption is asked about, not given up."""
    clocks = [OwnClock(tmp_path / f"clock-{number}") for number in range(2)]
    # No shorter lease: on a busy machine it would be lost without a jump.
    settings = {"lease": {"duration": "20s", "renew_deadline": "15s"}, "bindings_in_flight": 2}
    leader = start(url=proxy.url, environment=clocks[0].environment, **settings)
    assert eventually(lambda: leader.metric("forecast_leader") == 1, LONG), leader.log
    other = start(environment=clocks[1].environment, **settings)
    n_pods = _fill(writer, proxy, 400)
    writer.create_many(our_pod(f"beyond-{number}", cpu="100m") for number in range(10))
    for moment in (HOUR, -HOUR, DAY, _1970 - time.time(), _2100 - time.time(), 0):
        for clock in clocks:
            clock.set_to(moment)
            assert leader.metric("forecast_leader") + other.metric("forecast_leader") == 1
        assert overcommitted(writer.list_all("pods"), writer.list_all("nodes")) == {}
        for process in (leader, other):
            _assert_sound(process)
            assert process.http.get("/readyz").status_code == 200
    assert eventually(lambda: bound(writer) == n_pods, LONG), leader.log
    assert sum(1 for node in assert_settled(writer, [leader, other]).values() if node) == n_pods
    assert leader.metric("forecast_leader") == 1, "a jump of the clock made it lose the lease"
    writer.delete_many(pod for pod in writer.list_all("pods") if pod["metadata"]["name"] == "burst-0")
    assert eventually(lambda: bound(writer) == n_pods, LONG), "a pod that waits is not woken any more"


def _fill(writer: ClusterWriter, proxy: TcpProxy, n_pods: int) -> int:
    """As many nodes as these pods fill to the last bit, bound slowly."""
    writer.create_many(our_node(f"node-{i}", cpu=2) for i in range(n_pods // 20))
    owner = writer.create(replica_set("burst-7d9f", deployment="burst"))
    proxy.lag_new_connections(0.1)
    writer.create_many(our_pod(f"burst-{i}", cpu="100m", owner=owner) for i in range(n_pods))
    return n_pods


def _assert_sound(process: ScorerProcess) -> None:
    """No negative figure, no double booking, no complaint, no loop that runs wild."""
    lines = [line for line in process.http.get("/metrics").text.splitlines() if not line.startswith("#")]
    assert [line for line in lines if line.split()[-1].startswith("-")] == []
    assert reported(process, "forecast_overcommits_total", cause="own") == 0
    assert process.complaints == []
    before, began = _cpu_seconds(process), time.monotonic()
    time.sleep(1)
    assert (_cpu_seconds(process) - before) / (time.monotonic() - began) < _MOST_CPU


def _cpu_seconds(process: ScorerProcess) -> float:
    assert process.process is not None
    fields = Path(f"/proc/{process.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
