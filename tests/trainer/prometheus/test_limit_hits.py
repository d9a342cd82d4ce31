"""Throttling and OOM kills of a day, read from a real Prometheus: twice scraped, reset, missing, NaN."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from testing.servers.bad_proxy import BadProxy
from testing.servers.openmetrics import write_blocks
from testing.servers.prometheus import PrometheusServer
from tests.trainer.prometheus.scrapes import DAY, HOUR, MINUTE, Scrapes, frame, options_day_end
from trainer.history.limit_hits_file import OOM_BYTES, THROTTLED_SHARE
from trainer.prometheus.day_tables import DayTables
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_source import PrometheusSource

MIB = 2.0**20
HALF_HOUR = 30 * MINUTE


def _periods(s: Scrapes, pod: str, share: float, container: str = "main", **labels: Any) -> None:
    """Ten CFS periods a second, of which a share is throttled."""
    where: dict[str, Any] = {"namespace": "shop", "pod": pod, "container": container} | labels
    s.counter("container_cpu_cfs_periods_total", 10.0, **where)
    s.counter("container_cpu_cfs_throttled_periods_total", 10.0 * share, **where)


def _ends(s: Scrapes, pod: str, at: float, reason: str = "OOMKilled", **labels: Any) -> None:
    """The container ends at a time for a reason, and begins anew."""
    where = _main(pod) | labels
    s.gauge("kube_pod_container_status_restarts_total", lambda t: 3.0 + (t % 86_400 >= at), **where)
    s.gauge("kube_pod_container_status_last_terminated_reason", 1, at, **where, reason=reason)


def _series() -> Scrapes:
    s = Scrapes()
    pods = ("calm", "free", "held", "two", "twice", "reset", "nan", "idle", "leak", "burst", "node", "crash", "events")
    for pod in pods:
        s.pod("shop", pod, cpu=0.5)
    _periods(s, "calm", 0.0)
    _periods(s, "held", 0.4)
    # The pod's own cgroup and the pause container do not count.
    _periods(s, "held", 0.9, container="")
    _periods(s, "held", 0.9, container="POD")
    _periods(s, "two", 0.6)
    _periods(s, "two", 0.0, container="side")
    for replica in ("a", "b"):
        for kubelet in ("n1", "n2"):
            _periods(s, "twice", 0.3, prometheus_replica=replica, instance=kubelet)
    where = _main("reset")
    s.counter("container_cpu_cfs_periods_total", 10.0, resets=[HOUR + 130], **where)
    s.counter("container_cpu_cfs_throttled_periods_total", 2.0, resets=[HOUR + 130], **where)
    where = _main("nan")
    s.counter("container_cpu_cfs_periods_total", 10.0, **where)
    s.gauge("container_cpu_cfs_throttled_periods_total", np.nan, **where)
    where = _main("idle")
    s.counter("container_cpu_cfs_periods_total", 0.0, **where)
    s.counter("container_cpu_cfs_throttled_periods_total", 0.0, **where)
    _periods(s, "unlisted", 0.9)

    for replica in ("a", "b"):
        _ends(s, "leak", HOUR + 10 * MINUTE, prometheus_replica=replica)
    s.memory("shop", "leak", lambda t: np.where(t % 86_400 < HOUR + 9 * MINUTE, 400 * MIB, 50 * MIB))
    s.memory("shop", "leak", 30 * MIB, container="side")
    _memory_limit(s, "leak", 512 * MIB)
    _ends(s, "burst", HOUR)  # nothing is known of its memory
    _ends(s, "node", HOUR)
    s.memory("shop", "node", 100 * MIB)
    _memory_limit(s, "node", 8192 * MIB)
    _ends(s, "crash", HOUR, reason="Error")
    s.memory("shop", "crash", 100 * MIB)
    where = _main("events")
    s.gauge("container_oom_events_total", lambda t: 1.0 * (t % 86_400 >= 2 * HOUR + 5 * MINUTE), **where)
    s.memory("shop", "events", 200 * MIB)
    return s


def _memory_limit(s: Scrapes, pod: str, limit: float) -> None:
    s.gauge("kube_pod_container_resource_limits", limit, **_main(pod), resource="memory", unit="byte")


def _main(pod: str) -> dict[str, Any]:
    return {"namespace": "shop", "pod": pod, "container": "main"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    blocks = tmp_path_factory.mktemp("blocks")
    write_blocks(_series().series, blocks)
    with PrometheusServer(blocks) as running:
        yield running


@pytest.fixture(scope="module")
def day(server: PrometheusServer) -> DayTables:
    return PrometheusSource(PrometheusConnection(server.url)).read_day(DAY, options_day_end())


def _of(day: DayTables, pod: str) -> pd.DataFrame:
    hits = frame(day.limit_hits)
    return hits[hits["pod"] == pod]


@pytest.mark.parametrize(("pod", "share"), [("calm", 0.0), ("held", 0.4), ("two", 0.3), ("twice", 0.3), ("reset", 0.2)])
def test_the_share_of_throttled_periods_of_each_half_hour(day: DayTables, pod: str, share: float) -> None:
    rows = _of(day, pod)
    assert rows["at"].tolist() == [HALF_HOUR * k for k in range(8)]  # the four hours that it was scraped
    np.testing.assert_allclose(rows[THROTTLED_SHARE], share, atol=1e-6)
    assert rows[OOM_BYTES].isna().all()


@pytest.mark.parametrize("pod", ["free", "nan", "idle", "unlisted", "crash"])
def test_where_nothing_is_known_there_is_no_row(day: DayTables, pod: str) -> None:
    assert _of(day, pod).empty


@pytest.mark.parametrize(
    ("pod", "at", "level"),
    [
        ("leak", 2 * HALF_HOUR, 542 * MIB),  # the limit of the container that was killed, and the other one
        ("burst", 2 * HALF_HOUR, 0.0),
        ("node", 2 * HALF_HOUR, 100 * MIB),  # far below its limit: its node had no more
        ("events", 4 * HALF_HOUR, 200 * MIB),
    ],
)
def test_memory_of_a_pod_at_an_oom_kill(day: DayTables, pod: str, at: float, level: float) -> None:
    [row] = _of(day, pod).to_dict("records")
    assert (row["at"], row[OOM_BYTES]) == (at, level)


def test_nothing_is_remarked_where_the_counters_are_there(day: DayTables) -> None:
    assert not {"throttling", "OOM kills"} & {one.cause for one in day.remarks}


def test_few_queries_are_asked_and_none_by_step(server: PrometheusServer, day: DayTables) -> None:
    with BadProxy(server.url, lambda number, path: "pass") as proxy:
        source = PrometheusSource(PrometheusConnection(proxy.url))
        again = source.read_day(DAY, options_day_end())
    assert again.limit_hits.equals(day.limit_hits)
    asked = [one for one in map(str, proxy.requests) if "cfs" in one or "oom" in one or "resource_limits" in one]
    assert 0 < len(asked) <= 5


def test_a_server_without_the_counters_is_read_and_says_so_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    blocks, s = tmp_path_factory.mktemp("without"), Scrapes()
    s.pod("shop", "cart", cpu=0.5)
    write_blocks(s.series, blocks)
    with PrometheusServer(blocks) as server:
        found = PrometheusSource(PrometheusConnection(server.url)).read_day(DAY, options_day_end())
    assert found.limit_hits.num_rows == 0 and found.usage.num_rows > 0
    remarks = [one for one in found.remarks if one.cause in ("throttling", "OOM kills")]
    assert [one.cause for one in remarks] == ["throttling", "OOM kills"] and not any(one.wrong for one in remarks)
