"""Wall clocks that jump while pods are placed: nothing is bound twice or lost, and no wait or age follows the jump."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from testing.clusters.own_nodes import (
    LONG,
    assert_settled,
    bound,
    our_node,
    our_pod,
    reported,
)
from testing.processes.scorer_process import ScorerProcess
from testing.servers.cluster_objects import ClusterWriter, replica_set
from testing.servers.control_plane.tcp_proxy import TcpProxy
from testing.servers.own_clock import HOUR, OwnClock
from testing.waiting import eventually
from tests.schedule.conftest import Started

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
    assert eventually(lambda: bound(writer) == n_pods), scheduler.log
    assert all(assert_settled(writer, [scheduler]).values())
    longest = scheduler.metric("forecast_pod_scheduling_seconds_sum")
    assert longest < n_pods * LONG, "a jump of the clock counts as time that pods waited"
    _assert_sound(scheduler)


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
