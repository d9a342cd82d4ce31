from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from base.errors import InputError
from forecast.calendar import Calendar
from forecast.history import History
from forecast.service_key import ServiceKey
from tests.trainer.history.histories import COLUMNS, slow_usage_per_pod, tables
from trainer.history import files as history_files
from trainer.history.cleaning import CleaningCause
from trainer.history.files import HistoryFiles, read_history, read_pod_usage


def same(first: History, second: History) -> None:
    for name in (
        "usage_per_pod",
        "replicas",
        "pod_variance",
        "node_usage",
        "node_pod_usage",
        "capacity",
        "daily_requests",
    ):
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), rtol=1e-5, err_msg=name)
    for name in ("pod", "service", "node", "first", "end"):
        np.testing.assert_array_equal(getattr(first.placements, name), getattr(second.placements, name))
    assert (first.days, first.services, first.nodes) == (second.days, second.services, second.nodes)


def test_a_history_without_flaws_is_read_as_it_is(tmp_path: Path) -> None:
    data = tables(days=3, services={"cart": 3, "db": 1}, n_nodes=2)
    files = HistoryFiles.open(data.write(tmp_path))
    history = files.history()
    assert files.report.lines() == []
    assert history.days == (date(2026, 3, 2), date(2026, 3, 3), date(2026, 3, 4))
    assert history.services == (ServiceKey("shop", "Deployment", "cart"), ServiceKey("shop", "Deployment", "db"))
    assert history.nodes == ("node-0", "node-1")
    assert (history.replicas[0] == 3).all()
    assert (history.replicas[1] == 1).all()
    for index, service in enumerate(history.services):
        slow = slow_usage_per_pod(data.usage, Calendar(), history.days, service.service)
        np.testing.assert_allclose(history.usage_per_pod[index], slow, rtol=1e-5)
    # node-0 holds cart-0, cart-2; node-1 holds cart-1, db-0; nodes use 1 more than their pods.
    np.testing.assert_allclose(history.node_usage - history.node_pod_usage, 1.0, rtol=1e-4)
    assert sorted(zip(history.placements.pod.tolist(), history.placements.node.tolist(), strict=True)) == [
        (0, 0),
        (1, 1),
        (2, 0),
        (3, 1),
    ]
    assert set(history.placements.first) == {0}
    assert set(history.placements.end) == {3 * 48}
    np.testing.assert_allclose(history.requests, [[2.0, 1e6], [4.0, 1e6]])
    np.testing.assert_allclose(history.allocatable, history.capacity[:, :2])


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"])
@pytest.mark.parametrize("start", ["2026-03-27 00:00", "2026-10-23 00:00"])
def test_local_slots_follow_the_wall_clock(tmp_path: Path, zone: str, start: str) -> None:
    """In spring and autumn, in zones whose offset is not a whole hour and whose clocks move by half an hour."""
    data = tables(start=start, days=5, services={"cart": 1}, settings={"time_zone": zone})
    history = read_history(data.write(tmp_path))
    slow = slow_usage_per_pod(data.usage, Calendar(zone), history.days, "Deployment/cart")
    np.testing.assert_allclose(history.usage_per_pod[0], slow, rtol=1e-5)


@pytest.mark.parametrize("order", ["time", "pod", "shuffled", "backwards"])
@pytest.mark.parametrize(
    ("row_group_size", "window_bytes"),
    [
        (150, 1),
        (100_000, 400 << 20),
        pytest.param(150, 400 << 20, marks=pytest.mark.long),
        pytest.param(100_000, 1, marks=pytest.mark.long),
    ],
)
def test_order_of_rows_and_size_of_windows_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str, row_group_size: int, window_bytes: int
) -> None:
    data = tables(days=4, services={"cart": 3, "db": 2}, settings={"time_zone": "Europe/Berlin"})
    # One pod moves, one comes later and one leaves early.
    usage = data.usage
    usage.loc[(usage["pod"] == "cart-0") & (usage["timestamp"] >= "2026-03-03 10:00"), "node"] = "node-1"
    usage = usage[~((usage["pod"] == "cart-1") & (usage["timestamp"] < "2026-03-03 07:00"))]
    usage = usage[~((usage["pod"] == "db-0") & (usage["timestamp"] > "2026-03-04 07:10"))]
    data.usage = usage
    expected = read_history(data.write(tmp_path / "expected"))
    data.usage = {
        "time": usage,
        "pod": usage.sort_values(["pod", "timestamp"]),
        "shuffled": usage.sample(frac=1, random_state=1),
        "backwards": usage[::-1],
    }[order]
    monkeypatch.setattr(history_files, "WINDOW_BYTES", window_bytes)
    directory = data.write(tmp_path / "other", row_group_size=row_group_size)
    files = HistoryFiles.open(directory)
    same(files.history(), expected)
    assert files.report.total(CleaningCause.DUPLICATE) == 0
    moved = expected.placements
    pods = files.pods.pods
    runs = [(pods[p], n, f, e) for p, n, f, e in zip(moved.pod, moved.node, moved.first, moved.end, strict=True)]
    assert ("shop/cart-0", 0, 0, 68) not in runs  # the first day is cut off at local midnight
    assert [run[1:3] for run in runs if run[0] == "shop/cart-0"][1][0] == 1
    # Single pods say the same as the services they add up to.
    usage_of_pods = files.pod_usage(expected.days[0], expected.days[-1])
    total = np.nansum(usage_of_pods.usage * usage_of_pods.present[:, None], axis=0)
    services = np.nansum(expected.usage_per_pod * expected.replicas[:, None], axis=0)
    np.testing.assert_allclose(total, services, rtol=1e-4)


def test_a_pod_that_is_there_for_a_third_of_a_slot_counts_a_third(tmp_path: Path) -> None:
    data = tables(days=1, step_minutes=10, services={"cart": 2})
    usage = data.usage
    gone = (usage["pod"] == "cart-1") & (usage["timestamp"] >= "2026-03-02 12:10")
    data.usage = usage[~gone]
    history = read_history(data.write(tmp_path))
    slot = 24
    assert history.replicas[0, 0, slot] == pytest.approx(4 / 3)
    rows = data.usage[(data.usage["timestamp"] >= "2026-03-02 12:00") & (data.usage["timestamp"] < "2026-03-02 12:30")]
    assert history.usage_per_pod[0, 0, 0, slot] == pytest.approx(rows["cpu_cores"].mean(), rel=1e-5)
    assert (history.replicas[0, 0, slot + 1 :] == 1).all()


def test_a_gap_of_the_monitoring_is_no_data_and_not_zero_pods(tmp_path: Path) -> None:
    data = tables(days=2)
    gap = data.usage["timestamp"].between(pd.Timestamp("2026-03-02 12:00Z"), pd.Timestamp("2026-03-02 13:29Z"))
    data.usage = data.usage[~gap]
    history = read_history(data.write(tmp_path))
    assert np.isnan(history.replicas[:, 0, 24:27]).all()
    assert np.isnan(history.node_pod_usage[:, :, 0, 24:27]).all()
    assert (history.replicas[0, 0, [23, 27]] == 2).all()
    assert len(history.placements.pod) == 3, "a run of a pod on its node goes on through the gap"


@pytest.mark.parametrize(("step_minutes", "step"), [(45, "45m"), (60, "1h"), (60, None)])
def test_a_sample_longer_than_a_slot_counts_for_all_slots_it_covers(
    tmp_path: Path, step_minutes: int, step: str | None
) -> None:
    data = tables(days=3, step_minutes=step_minutes, services={"cart": 1}, settings={"step": step} if step else None)
    history = read_history(data.write(tmp_path))
    fine = data.usage.set_index("timestamp")["cpu_cores"].resample("5min").ffill()
    fine = fine.reindex(pd.date_range("2026-03-02", periods=3 * 288, freq="5min", tz="UTC")).ffill()
    expected = fine.resample("30min").mean().to_numpy().reshape(3, 48)
    np.testing.assert_allclose(history.usage_per_pod[0, 0], expected, rtol=1e-5)
    assert (history.replicas == 1).all()


def test_partial_days_at_the_ends_are_cut_if_less_than_half_is_there(tmp_path: Path) -> None:
    data = tables(start="2026-03-02 13:00", days=3)  # 11 hours, two days, 13 hours
    files = HistoryFiles.open(data.write(tmp_path))
    assert files.days == (date(2026, 3, 3), date(2026, 3, 4), date(2026, 3, 5))
    history = files.history()
    assert np.isnan(history.replicas[0, 2, 26:]).all()
    assert (history.replicas[0, 2, :26] == 2).all()
    assert any("cut off" in line for line in files.report.lines())


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", None])
def test_timestamps_of_any_unit_and_zone_are_the_same_instants(tmp_path: Path, unit: str, zone: str | None) -> None:
    data = tables(days=1)
    expected = read_history(data.write(tmp_path / "expected"))
    for frame in (data.usage, data.nodes):
        converted = frame["timestamp"].dt.tz_convert(zone or "UTC").dt.as_unit(unit)
        frame["timestamp"] = converted if zone else converted.dt.tz_localize(None)
    same(read_history(data.write(tmp_path / "other")), expected)


def test_scrapes_that_jitter_are_neither_duplicates_nor_gaps(tmp_path: Path) -> None:
    data = tables(days=2, step_minutes=5, start="2026-03-02 00:02:30")
    jitter = np.random.default_rng(3).integers(-20, 21, len(data.usage))
    data.usage["timestamp"] += pd.to_timedelta(jitter, unit="s")
    files = HistoryFiles.open(data.write(tmp_path))
    assert (files.history().replicas[:, :, 1:-1] == [[[2]], [[1]]]).all()
    assert files.report.lines() == []


def test_an_own_calendar_overrides_the_one_of_the_files(tmp_path: Path) -> None:
    directory = tables(days=3, settings={"time_zone": "Europe/Berlin", "holiday_country": "DE"}).write(tmp_path)
    assert read_history(directory).calendar == Calendar("Europe/Berlin", "DE")
    assert read_history(directory, calendar=Calendar("Asia/Tokyo")).calendar == Calendar("Asia/Tokyo")


def test_pods_that_come_with_their_node_count_as_its_base(tmp_path: Path) -> None:
    data = tables(days=1, services={"cart": 1, "agent": 1}, n_nodes=1)
    data.usage["service"] = data.usage["service"].replace("Deployment/agent", "DaemonSet/agent")
    files = HistoryFiles.open(data.write(tmp_path))
    history = files.history()
    assert [service.name for service in history.services] == ["cart"]
    np.testing.assert_allclose(history.node_pod_usage[0], history.usage_per_pod[0], rtol=1e-5)
    assert files.pod_usage(history.days[0], history.days[0]).pods == ("shop/cart-0",)


def test_pods_of_the_same_name_in_two_namespaces_stay_apart(tmp_path: Path) -> None:
    data = tables(days=1)
    twin = data.usage.assign(namespace="other", **{column: data.usage[column] * 3 for column in COLUMNS})
    data.usage = pd.concat([data.usage, twin], ignore_index=True)
    history = read_history(data.write(tmp_path))
    assert [str(service) for service in history.services] == [
        "other/Deployment/cart",
        "other/Deployment/db",
        "shop/Deployment/cart",
        "shop/Deployment/db",
    ]
    np.testing.assert_allclose(history.usage_per_pod[:2], 3 * history.usage_per_pod[2:], rtol=1e-5)


def test_pod_usage_of_a_range_holds_the_pods_of_that_range(tmp_path: Path) -> None:
    data = tables(days=5, services={"cart": 2})
    data.usage = data.usage[~((data.usage["pod"] == "cart-0") & (data.usage["timestamp"] >= "2026-03-04"))]
    directory = data.write(tmp_path)
    early = read_pod_usage(directory, date(2026, 3, 2), date(2026, 3, 3))
    late = read_pod_usage(directory, date(2026, 3, 5), date(2026, 3, 6))
    assert early.pods == ("shop/cart-0", "shop/cart-1")
    assert late.pods == ("shop/cart-1",)
    assert late.usage.shape == (1, 5, 2, 48)
    assert early.services == late.services == read_history(directory).services
    assert (late.present == 1).all()
    assert late.node.tolist() == [1]
    np.testing.assert_allclose(late.requests, [[2.0, 1e6]])


@pytest.mark.parametrize(("first", "last"), [(1, 2), (3, 40), (4, 3)])
def test_a_range_outside_the_history_is_refused(tmp_path: Path, first: int, last: int) -> None:
    files = HistoryFiles.open(tables(days=3).write(tmp_path))
    start = date(2026, 3, 1).toordinal()
    with pytest.raises(InputError, match="2026"):
        files.pod_usage(date.fromordinal(start + first - 1), date.fromordinal(start + last - 1))
