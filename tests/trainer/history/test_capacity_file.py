"""Days are judged by the capacity of that day: a node that was rebuilt loses no honest value and hides no wrong one."""

from __future__ import annotations

import shutil
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from base.errors import InputError
from forecast.history import History
from forecast.resources import CPU, DISK, MEMORY
from tests.trainer.history.histories import CAPACITY, Tables, tables
from trainer.history.cleaning import CleaningCause
from trainer.history.files import HistoryFiles

FIRST = date(2026, 3, 2)
DAYS = [FIRST + timedelta(days=n) for n in range(6)]
REBUILT = DAYS[3]
GB = 1e9


def cluster(cores: dict[date | None, float], *, before: float, after: float, zone: str = "UTC") -> Tables:
    """Node node-3 uses `before` cores until it is rebuilt, `after` from then on; its one pod, of db, almost all of it.

    cores : of node-3 by the day of the row in capacity.parquet, None = the row has no day
    """
    made = tables(days=6, step_minutes=30, services={"cart": 3, "db": 1}, n_nodes=4, settings={"time_zone": zone})
    for frame, share in ((made.usage, 0.9), (made.nodes, 1.0)):
        mine = frame["node"] == "node-3"
        is_new = frame.loc[mine, "timestamp"] >= pd.Timestamp(REBUILT, tz="UTC")
        frame.loc[mine, "cpu_cores"] = share * np.where(is_new, after, before)
    others = made.capacity[made.capacity["node"] != "node-3"].assign(day=None)
    rows = [{"node": "node-3", **CAPACITY, "cpu_cores": value, "day": day} for day, value in cores.items()]
    made.capacity = pd.concat([others, pd.DataFrame(rows)])
    return made


def read(directory: Path) -> tuple[History, HistoryFiles]:
    files = HistoryFiles.open(directory)
    return files.history(), files


def cores_of(history: History) -> list[float]:
    """What each day of node-3 is judged by."""
    return [float(value) for value in history.capacity_of_days[3, CPU]]


def spoil(made: Tables, day: date, cpu_cores: float) -> None:
    """One sample of the node that cannot be."""
    wrong = (made.nodes["node"] == "node-3") & (made.nodes["timestamp"] == pd.Timestamp(day, tz="UTC"))
    made.nodes.loc[wrong, "cpu_cores"] = cpu_cores


def test_a_node_rebuilt_smaller_keeps_its_past_and_is_judged_by_what_it_has_now(tmp_path: Path) -> None:
    """Failed before: all values of the first half were dropped, since the last capacity was taken for all days."""
    made = cluster({DAYS[0]: 16.0, REBUILT: 4.0}, before=12.0, after=3.0)
    history, files = read(made.write(tmp_path / "honest"))
    assert files.report.lines() == [] and files.cut == []
    np.testing.assert_allclose(history.node_usage[3, CPU, :3], 12.0)
    assert history.capacity[3, CPU] == 4.0
    # When on that day it was rebuilt nobody knows: the larger of both holds.
    assert cores_of(history) == [16.0, 16.0, 16.0, 16.0, 4.0, 4.0]

    spoil(made, DAYS[4], 12.0)
    history, files = read(made.write(tmp_path / "impossible"))
    assert files.report.lines() == ["nodes.parquet: 1 values exceed 2 x the node's capacity: taken as not measured"]
    assert np.isnan(history.node_usage[3, CPU, 4, 0])


def test_a_node_rebuilt_larger_does_not_hide_what_was_impossible_before(tmp_path: Path) -> None:
    """Failed before: 12 cores of a node with 4 passed for measured."""
    made = cluster({None: 4.0, REBUILT: 16.0}, before=3.0, after=12.0)
    spoil(made, DAYS[1], 12.0)
    history, files = read(made.write(tmp_path))
    assert files.report.lines() == ["nodes.parquet: 1 values exceed 2 x the node's capacity: taken as not measured"]
    assert np.isnan(history.node_usage[3, CPU, 1, 0])
    np.testing.assert_allclose(history.node_usage[3, CPU, 3:], 12.0)
    assert cores_of(history) == [4.0, 4.0, 4.0, 16.0, 16.0, 16.0]


def test_what_pods_claim_is_held_against_the_node_of_that_day(tmp_path: Path) -> None:
    """A node of 4 cores that uses 3 cannot hold a pod that claims 4.8; one of 64 cores may measure it so roughly."""
    made = cluster({None: 64.0, REBUILT: 4.0}, before=3.0, after=3.0)
    mine = made.usage["node"] == "node-3"
    made.usage.loc[mine, "cpu_cores"] = 4.8
    _, files = read(made.write(tmp_path))
    assert files.report.total(CleaningCause.BEYOND_NODE) == 48 * 2, "of the two days after the day of the change"


@pytest.mark.parametrize(("zone", "larger"), [("Asia/Tokyo", [3, 4]), ("America/Los_Angeles", [2, 3])])
def test_a_local_day_has_the_largest_of_the_utc_days_it_touches(tmp_path: Path, zone: str, larger: list[int]) -> None:
    """The node grew for one UTC day: both local days that touch it, and the day after, are judged by that."""
    made = cluster({None: 4.0, REBUILT: 16.0, DAYS[4]: 4.0}, before=3.0, after=3.0, zone=zone)
    history, _ = read(made.write(tmp_path))
    of_day = dict(zip(history.days, cores_of(history), strict=True))
    assert {day for day, cores in of_day.items() if cores == 16.0} >= {DAYS[number] for number in larger}
    assert of_day[DAYS[1]] == 4.0 and history.capacity[3, CPU] == 4.0


def test_older_files_of_our_own_history_tell_the_day_by_their_name(tmp_path: Path) -> None:
    made = cluster({None: 4.0}, before=12.0, after=3.0)
    made.write(tmp_path)
    (tmp_path / "capacity.parquet").unlink()
    (tmp_path / "capacity.parquet").mkdir()
    for day in DAYS:
        cores = 16.0 if day < REBUILT else 4.0
        table = made.capacity.drop(columns="day").replace({"cpu_cores": {4.0: cores}})
        if day == DAYS[-1]:
            table = table.assign(day=day)  # a newer release wrote it
        table.to_parquet(tmp_path / "capacity.parquet" / f"{day}.parquet", index=False)
    history, files = read(tmp_path)
    assert files.report.lines() == []
    assert cores_of(history) == [16.0, 16.0, 16.0, 16.0, 4.0, 4.0]


def test_a_day_on_which_nobody_said_keeps_what_is_known(tmp_path: Path) -> None:
    """Kube-state-metrics was away on the last day."""
    history, _ = read(cluster({DAYS[1]: 16.0, DAYS[5]: np.nan}, before=12.0, after=12.0).write(tmp_path))
    assert history.capacity[3, CPU] == 16.0 and history.daily_capacity is None


def test_a_capacity_of_the_settings_is_corrected_for_all_days(tmp_path: Path) -> None:
    """Disk, network and log are what a user says: too little, corrected later, or taken back."""
    made = cluster({DAYS[0]: 16.0, REBUILT: 16.0}, before=12.0, after=12.0)
    made.capacity = made.capacity.reset_index(drop=True)
    mine = made.capacity["node"] == "node-3"
    for name, values, expected in (("wrong", (1.0, 1e6), 1e6), ("taken back", (1.0, np.nan), np.nan)):
        made.capacity.loc[mine, "disk_bytes_per_second"] = values
        history, files = read(made.write(tmp_path / name))
        assert files.report.total(CleaningCause.ABOVE_CAPACITY) == 0
        np.testing.assert_array_equal(history.capacity_of_days[3, DISK], expected)


def test_a_history_without_changes_is_what_it_was(tmp_path: Path) -> None:
    made = tables(days=3, step_minutes=30)
    plain = read(made.write(tmp_path / "plain"))[0]
    made.capacity = pd.concat([made.capacity.assign(day=day) for day in DAYS])
    dated = read(made.write(tmp_path / "dated"))[0]
    assert dated.daily_capacity is None and dated.digest() == plain.digest()
    assert dated.capacity_of_days.shape == (*dated.capacity.shape, 3)


def test_a_day_that_is_no_date_is_refused(tmp_path: Path) -> None:
    made = tables(days=2, step_minutes=30)
    made.capacity = made.capacity.assign(day="monday")
    with pytest.raises(
        InputError, match=r"capacity\.parquet: column day is (large_)?string, it must be a Parquet date"
    ):
        HistoryFiles.open(made.write(tmp_path))
    shutil.rmtree(tmp_path)
    made.capacity = made.capacity.assign(day=pd.Timestamp(DAYS[0]))
    assert HistoryFiles.open(made.write(tmp_path)).history().capacity[0, MEMORY] == CAPACITY["memory_bytes"]


def test_what_was_known_before_a_day_has_the_capacity_of_then(tmp_path: Path) -> None:
    history, _ = read(cluster({None: 16.0, REBUILT: 4.0}, before=12.0, after=3.0).write(tmp_path))
    assert history.before(2).capacity[3, CPU] == 16.0
    assert cores_of(history.before(5, keep=2)) == [16.0, 4.0]
    assert history.before(6).capacity is history.capacity
