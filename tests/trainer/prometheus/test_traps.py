"""Each trap of reading Kubernetes metrics, against a real Prometheus (trap_series.py holds the series)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from testing.servers.openmetrics import write_blocks
from testing.servers.prometheus import PrometheusServer
from tests.trainer.prometheus.scrapes import DAY, HOUR, MINUTE, Scrapes, frame, of, options_day_end, when
from tests.trainer.prometheus.trap_series import MIB, trap_series
from trainer.history.cleaning import CleaningCause
from trainer.prometheus.day_tables import DayTables
from trainer.prometheus.log_source import LogSource
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.prometheus.prometheus_source import PrometheusSource

Read = Callable[[LogSource], DayTables]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Read]:
    blocks = tmp_path_factory.mktemp("blocks")
    write_blocks(trap_series(), blocks)
    with PrometheusServer(blocks) as server:
        connection = PrometheusConnection(server.url)

        @cache
        def day(source: LogSource) -> DayTables:
            return PrometheusSource(connection, SourceOptions(log_source=source)).read_day(DAY, options_day_end())

        yield day


@pytest.fixture(scope="module")
def day(read: Read) -> DayTables:
    return read(LogSource.AUTO)


def test_a_value_belongs_to_the_step_before_it_and_no_time_repeats(day: DayTables) -> None:
    usage = frame(day.usage)
    assert usage["at"].min() == 0.0  # scraped from 00:00:10 on, first evaluated at 00:05
    assert not usage.duplicated(["timestamp", "namespace", "pod"]).any()
    assert usage["timestamp"].is_monotonic_increasing and frame(day.nodes)["timestamp"].is_monotonic_increasing
    assert day.recorded_share == 0.0


def test_a_pod_that_moved_is_on_one_node_at_a_time(day: DayTables) -> None:
    pod = of(day, "db-0")
    before, after = when(pod, 0, HOUR), when(pod, HOUR, 2 * HOUR)
    assert set(before["node"]) == {"n1"} and len(before) == 12
    assert set(after["node"]) == {"n2"} and len(after) == 12
    np.testing.assert_allclose(before["cpu_cores"], 1.0, rtol=1e-6)
    np.testing.assert_allclose(after["cpu_cores"], 3.0, rtol=1e-6)
    assert set(pod["service"]) == {"StatefulSet/db"}


def test_a_rollout_changes_the_pods_not_the_service(day: DayTables) -> None:
    usage = frame(day.usage)
    cart = usage[usage["service"] == "Deployment/cart"]
    assert set(when(cart, 0, HOUR)["pod"]) == {"cart-5d9c7b8f6-aaaaa"}
    # kube-state-metrics scraped the old pod last at 00:59:10: it is in sight for less than five minutes.
    assert set(when(cart, HOUR, 2 * HOUR)["pod"]) == {"cart-7bdf4c6c9-bbbbb"}


def test_a_pod_of_minutes_has_its_ticks(day: DayTables) -> None:
    assert of(day, "brief")["at"].tolist() == [HOUR, HOUR + 5 * MINUTE, HOUR + 10 * MINUTE]
    assert len(of(day, "between")) <= 1


def test_replicas_are_counted_over_time(day: DayTables) -> None:
    usage = frame(day.usage)
    counts = usage[usage["service"] == "Deployment/api"].groupby("at").size()
    assert counts[30 * MINUTE] == 1 and counts[90 * MINUTE] == 3 and counts[2 * HOUR + 15 * MINUTE] == 1


@pytest.mark.parametrize("pod", ["waiting", "finished"])
def test_a_pod_that_does_not_run_is_not_there(day: DayTables, pod: str) -> None:
    assert of(day, pod).empty


def test_a_counter_reset_is_no_negative_rate_and_no_peak(day: DayTables) -> None:
    np.testing.assert_allclose(when(of(day, "reset"), 0, 2 * HOUR)["cpu_cores"], 2.0, rtol=1e-6)


def test_in_a_gap_of_one_exporter_the_pod_is_there_unmeasured(day: DayTables) -> None:
    gap = when(of(day, "gap"), HOUR, 1.5 * HOUR)
    assert len(gap) == 6 and gap["cpu_cores"].isna().all()
    assert when(of(day, "gap"), 0, HOUR)["cpu_cores"].notna().all()


def test_in_a_gap_of_everything_there_is_no_row(day: DayTables) -> None:
    assert when(frame(day.usage), 2.5 * HOUR + 300, 2.75 * HOUR).empty
    assert when(frame(day.nodes), 2.5 * HOUR, 2.75 * HOUR).empty


def test_without_kube_state_metrics_pods_with_usage_keep_node_and_service(day: DayTables) -> None:
    silent = when(frame(day.usage), 3 * HOUR + 300, 3.5 * HOUR)
    db = silent[silent["pod"] == "db-0"]
    assert len(db) == 5 and set(db["node"]) == {"n2"} and set(db["service"]) == {"StatefulSet/db"}
    assert "bare" not in set(silent["pod"])  # no usage, and nobody says that it runs


def test_nan_is_not_measured_and_counted(day: DayTables) -> None:
    pod = of(day, "nan")
    assert when(pod, HOUR, HOUR + 600)["memory_bytes"].isna().all()
    assert when(pod, 0, HOUR)["memory_bytes"].notna().all()
    assert day.counts["usage.parquet", CleaningCause.NOT_FINITE] == 2


def test_usage_of_a_pod_nobody_listed_is_left_out_and_counted(day: DayTables) -> None:
    assert of(day, "orphan").empty
    assert day.counts["usage.parquet", CleaningCause.UNKNOWN_OWNER] == 1


@pytest.mark.parametrize(("pod", "cpu"), [("scraped", 1.5), ("listed", 1.0), ("cgroups", 1.5), ("restarted", 1.0)])
def test_nothing_counts_twice(day: DayTables, pod: str, cpu: float) -> None:
    rows = when(of(day, pod), 0, 2 * HOUR)
    assert not rows.duplicated("at").any() and len(rows) == 24
    np.testing.assert_allclose(rows["cpu_cores"], cpu, rtol=1e-6)


def test_memory_of_the_pod_cgroup_does_not_count(day: DayTables) -> None:
    np.testing.assert_allclose(when(of(day, "cgroups"), 0, HOUR)["memory_bytes"], 150 * MIB)


@pytest.mark.parametrize(("pod", "rate"), [("plain", 1320.0), ("docker", 1200.0)])
def test_network_is_read_at_pod_level(day: DayTables, pod: str, rate: float) -> None:
    np.testing.assert_allclose(when(of(day, pod), 0, HOUR)["network_bytes_per_second"], rate, rtol=1e-6)


def test_network_of_a_pod_on_the_host_network_is_not_measured(day: DayTables) -> None:
    pod = when(of(day, "host"), 0, HOUR)
    assert pod["network_bytes_per_second"].isna().all() and pod["cpu_cores"].notna().all()


@pytest.mark.parametrize(("pod", "rate"), [("both", 1030.0), ("writes", 700.0)])
def test_disk_counts_whole_devices_and_either_direction(day: DayTables, pod: str, rate: float) -> None:
    np.testing.assert_allclose(when(of(day, pod), 0, HOUR)["disk_bytes_per_second"], rate, rtol=1e-6)


@pytest.mark.parametrize(
    ("pod", "service"),
    [
        ("web-66c9b7d5f-x", "Deployment/web"),
        ("canary-66c9b7d5f-x", "Rollout/canary"),
        ("alone-66c9b7d5f-x", "ReplicaSet/alone-66c9b7d5f"),
        ("tidy-29500000-x", "CronJob/tidy"),
        ("once-x", "Job/once"),
        ("bare", "Pod/bare"),
        ("etcd-n1", "StaticPod/etcd"),
        ("logger-x", "DaemonSet/logger"),
    ],
)
def test_owners(day: DayTables, pod: str, service: str) -> None:
    assert set(of(day, pod)["service"]) == {service}
    pods = frame(day.pods)
    assert set(pods[pods["pod"] == pod]["service"]) == {service}


def test_requests_are_summed_over_containers_and_the_last_of_the_day(day: DayTables) -> None:
    pods = frame(day.pods).set_index("pod")[["request_cpu_cores", "request_memory_bytes"]]
    assert list(pods.loc["asks"]) == [0.75, 150 * MIB]
    assert list(pods.loc["resized"]) == [0.2, 10 * MIB]
    assert pods.loc["bare"].isna().all()


@pytest.mark.parametrize("node", ["n1", "n2", "n3", "n4"])
def test_node_totals_are_of_physical_devices_under_the_name_of_the_node(day: DayTables, node: str) -> None:
    nodes = frame(day.nodes)
    assert set(nodes["node"]) == {"n1", "n2", "n3", "n4"}
    row = when(nodes[nodes["node"] == node], 0, HOUR)
    for column, value in (
        ("cpu_cores", 5.0),
        ("memory_bytes", 2048 * MIB),
        ("disk_bytes_per_second", 600.0),  # sda and nvme0n1
        ("network_bytes_per_second", 3000.0),  # eth0 and enp3s0
    ):
        np.testing.assert_allclose(row[column], value, rtol=1e-6, err_msg=column)


def test_capacities(day: DayTables) -> None:
    capacity = frame(day.capacity).set_index("node")
    assert capacity["cpu_cores"].tolist() == [8.0] * 4
    assert capacity["network_bytes_per_second"].tolist() == [1.25e9] * 4  # an interface without a speed says -1
    assert capacity["disk_bytes_per_second"].isna().all()
    np.testing.assert_allclose(capacity["allocatable_cpu_cores"], 7.2)


@pytest.mark.parametrize(
    ("source", "rate"),
    [(LogSource.AUTO, 1005.0), (LogSource.VECTOR, 1005.0), (LogSource.PROMTAIL, 4000.0), (LogSource.ALLOY, 6000.0)],
)
def test_log_bytes_of_a_collector_per_pod_and_per_node(read: Read, source: LogSource, rate: float) -> None:
    tables = read(source)
    extra = 5.0 if rate == 1005.0 else 0.0
    for number in (1, 2):
        expected = (rate - extra) * number + extra
        pod = when(of(tables, f"talks-{number}"), 0, 2 * HOUR)
        np.testing.assert_allclose(pod["log_bytes_per_second"], expected, rtol=1e-6)
        np.testing.assert_allclose(_node_log(tables, f"n{number}"), expected, rtol=1e-6)


def test_fluent_bit_counts_per_node_only(read: Read) -> None:
    tables = read(LogSource.FLUENT_BIT)
    assert frame(tables.usage)["log_bytes_per_second"].isna().all()
    for number in (1, 2):
        np.testing.assert_allclose(_node_log(tables, f"n{number}"), 4000.0 * number + 10, rtol=1e-6)


def test_no_log_source_measures_nothing(read: Read) -> None:
    assert frame(read(LogSource.NONE).usage)["log_bytes_per_second"].isna().all()


def test_the_gauge_of_the_kubelet_gives_positive_differences(read: Read) -> None:
    tables = read(LogSource.KUBELET)
    pod = when(of(tables, "talks-1"), 300, 2 * HOUR)
    np.testing.assert_allclose(pod["log_bytes_per_second"], 110.0, rtol=1e-6)
    rotated = when(of(tables, "talks-2"), 300, 2 * HOUR).set_index("at")["log_bytes_per_second"]
    assert np.isnan(rotated[HOUR]) and rotated.isna().sum() == 1
    np.testing.assert_allclose(rotated.dropna(), 1000.0, rtol=1e-6)
    assert (when(of(tables, "quiet"), 300, 2 * HOUR)["log_bytes_per_second"] == 0).all()


@pytest.mark.parametrize("pod", ["chatters", "capped"])
def test_saturated_containers_are_not_measured_and_neither_is_their_node(read: Read, pod: str) -> None:
    tables = read(LogSource.KUBELET)
    assert when(of(tables, pod), 600, 2 * HOUR)["log_bytes_per_second"].isna().all()
    assert tables.counts["usage.parquet", CleaningCause.LOG_SATURATED] > 40
    np.testing.assert_allclose(when(of(tables, "steady"), 600, 2 * HOUR)["log_bytes_per_second"], 5.0)
    nodes = frame(tables.nodes)
    assert when(nodes[nodes["node"] == "n3"], 600, 2 * HOUR)["log_bytes_per_second"].isna().all()
    assert (_node_log(tables, "n4", 300) == 0).all()


def test_late_samples_are_there_when_the_day_is_read_again(tmp_path: Path) -> None:
    early, late = Scrapes(), Scrapes()
    early.pod("shop", "late")
    late.cpu("shop", "late", 1.0)
    with PrometheusServer(tmp_path) as server:
        source = PrometheusSource(PrometheusConnection(server.url))
        server.stop()
        write_blocks(early.series, tmp_path)
        server.start()
        before = frame(source.read_day(DAY, options_day_end()).usage)
        server.stop()
        write_blocks(late.series, tmp_path)
        server.start()
        after = frame(source.read_day(DAY, options_day_end()).usage)
    assert len(before) == len(after) == 48
    assert before["cpu_cores"].isna().all() and after["cpu_cores"].notna().all()


def _node_log(tables: DayTables, node: str, begin: float = 0) -> pd.Series:
    nodes = frame(tables.nodes)
    return when(nodes[nodes["node"] == node], begin, 2 * HOUR)["log_bytes_per_second"]
