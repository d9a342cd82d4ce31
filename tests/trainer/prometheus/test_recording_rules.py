"""The shipped rules are up to date, valid, and say the same as the raw queries."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from testing.servers.openmetrics import write_blocks
from testing.servers.prometheus import PrometheusServer, promtool
from tests.trainer.prometheus.scrapes import DAY, HOUR, Scrapes, frame, options_day_end, when
from trainer.prometheus.day_tables import DayTables
from trainer.prometheus.log_source import LogSource
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.prometheus.prometheus_source import PrometheusSource
from trainer.prometheus.recording_rules import rule_file, rule_file_text

SHIPPED = Path(__file__).parents[3] / "dashboards" / "recording-rules.yaml"
RECORDED_FROM, RECORDED_TO = "2026-03-02T00:00:00Z", "2026-03-02T02:00:00Z"


def test_the_shipped_file_is_up_to_date() -> None:
    assert SHIPPED.read_text() == rule_file_text(rule_file())


def test_the_gauge_of_the_kubelet_is_not_recorded() -> None:
    assert "kubelet_container_log" not in SHIPPED.read_text()
    resources = [
        rule["labels"]["resource"]
        for group in rule_file(log_source=LogSource.KUBELET)["groups"]
        for rule in group["rules"]
        if "labels" in rule
    ]
    assert "log" not in resources and len(resources) == 8


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DayTables, DayTables, DayTables]]:
    """A day read raw; with its first two hours recorded; with these ignored."""
    scrapes = Scrapes()
    for number in range(1, 4):
        scrapes.pod("shop", f"cart-{number}", f"n{number}", kind="StatefulSet", owner="cart", cpu=0.5 * number)
        where: dict[str, Any] = {"namespace": "shop", "pod": f"cart-{number}"}
        scrapes.counter("container_network_receive_bytes_total", 1e3, **where, interface="eth0")
        scrapes.counter("container_fs_writes_bytes_total", 2e3, **where, container="main", device="sda")
        scrapes.memory("shop", f"cart-{number}", 1e8 * number)
        scrapes.counter("promtail_read_bytes_total", 50, path=f"/var/log/pods/shop_cart-{number}_u/main/0.log")
        scrapes.counter("node_cpu_seconds_total", 3.0, instance=f"n{number}:9100", cpu=0, mode="user")
        scrapes.gauge("node_memory_MemTotal_bytes", 3e10, instance=f"n{number}:9100")
        scrapes.gauge("node_memory_MemAvailable_bytes", 2.8e10, instance=f"n{number}:9100")
    directory = tmp_path_factory.mktemp("rules")
    write_blocks(scrapes.series, directory / "tsdb")
    with PrometheusServer(directory / "tsdb") as server:
        source = PrometheusSource(PrometheusConnection(server.url), SourceOptions())
        raw = source.read_day(DAY, options_day_end())
        times = (f"--start={RECORDED_FROM}", f"--end={RECORDED_TO}")
        places = (f"--url={server.url}", f"--output-dir={directory / 'recorded'}")
        promtool("tsdb", "create-blocks-from", "rules", *times, *places, SHIPPED)
        server.stop()
        for block in (directory / "recorded").iterdir():
            shutil.move(block, server.blocks / block.name)
        server.start()
        mixed = source.read_day(DAY, options_day_end())
        ignoring = PrometheusSource(PrometheusConnection(server.url), SourceOptions(recording_rules=False))
        yield raw, mixed, ignoring.read_day(DAY, options_day_end())


def test_recorded_and_raw_say_the_same(tables: tuple[DayTables, DayTables, DayTables]) -> None:
    raw, mixed, _ = tables
    assert raw.recorded_share == 0
    assert mixed.recorded_share == pytest.approx(0.5, abs=0.03)  # two of four hours
    for table in ("usage", "nodes"):
        one, other = frame(getattr(raw, table)), frame(getattr(mixed, table))
        # Rules are evaluated at an offset of their own within the step: the first sample is of a window in which the
        # series had not yet begun.
        one, other = (x[x["at"] != 0].reset_index(drop=True) for x in (one, other))
        assert len(when(one, 0, 4 * HOUR)) == 3 * 47
        pd.testing.assert_frame_equal(one, other, rtol=1e-6)


def test_rules_can_be_ignored(tables: tuple[DayTables, DayTables, DayTables]) -> None:
    raw, _, ignoring = tables
    assert ignoring.recorded_share == 0
    assert ignoring.usage.equals(raw.usage) and ignoring.nodes.equals(raw.nodes)


@pytest.fixture(scope="module")
def recorded_twice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """Only recorded series are left, of two Prometheus replicas; node log bytes are an aggregating fluent-bit's."""
    scrapes = Scrapes()
    for replica in ("a", "b"):
        twice: dict[str, Any] = {"prometheus_replica": replica}
        info: dict[str, Any] = {
            "created_by_kind": "StatefulSet",
            "created_by_name": "cart",
            "host_network": "false",
            "uid": "u",
        }
        where: dict[str, Any] = {"namespace": "shop", "pod": "cart-0"}
        scrapes.gauge("forecast:pod_info", 1, **where, **info, node="n1", **twice)
        scrapes.gauge("forecast:pod_usage", 0.5, **where, resource="cpu", **twice)
        scrapes.gauge("forecast:pod_usage", 100, **where, resource="log", **twice)
        scrapes.gauge("forecast:node_usage", 0.7, node="n1", resource="cpu", **twice)
        scrapes.gauge("forecast:node_usage", 9000, node="n1", resource="log", **twice)
    directory = tmp_path_factory.mktemp("recorded-twice")
    write_blocks(scrapes.series, directory)
    with PrometheusServer(directory) as server:
        yield server


@pytest.mark.parametrize(
    ("source", "pod_log", "node_log"),
    [
        (LogSource.AUTO, 100.0, 9000.0),  # the raw counters are gone: what was recorded is all there is
        (LogSource.VECTOR, 100.0, 100.0),  # a node's log bytes are the sum of its pods
        (LogSource.FLUENT_BIT, None, 9000.0),
        (LogSource.NONE, None, None),
    ],
)
def test_records_of_two_replicas_count_once_and_log_bytes_only_of_the_source_asked_for(
    recorded_twice: PrometheusServer, source: LogSource, pod_log: float | None, node_log: float | None
) -> None:
    options = SourceOptions(log_source=source)
    read = PrometheusSource(PrometheusConnection(recorded_twice.url), options).read_day(DAY, options_day_end())
    pods, nodes = frame(read.usage), frame(read.nodes)
    assert len(pods) == len(nodes) > 40
    assert pods.cpu_cores.dropna().unique() == pytest.approx([0.5])
    assert nodes.cpu_cores.dropna().unique() == pytest.approx([0.7])
    for table, expected in ((pods, pod_log), (nodes, node_log)):
        assert table.log_bytes_per_second.dropna().unique().tolist() == ([] if expected is None else [expected])
