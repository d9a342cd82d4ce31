"""Runs of Job pods as they are read from a history directory: joined, cut and counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from forecast.history import History
from forecast.service_key import ServiceKey
from tests.forecast.job_histories import job_tables, nightly, run_rows
from tests.trainer.history.histories import Tables
from trainer.history import files as history_files
from trainer.history.files import read_history

DAYS = [f"2026-03-{day:02}" for day in range(2, 10)]
MINUTE, HOUR, DAY = 60, 3600, 86_400


def runs_of(history: History, name: str) -> list[tuple[int, int, bool, bool]]:
    """(start, seconds, start unseen, end unseen) of a CronJob's runs."""
    service = history.services.index(ServiceKey("shop", "CronJob", name))
    runs = history.runs
    mine = runs.service == service
    return [
        (start, round(seconds), *is_open)
        for start, seconds, is_open in zip(
            runs.start[mine].tolist(), runs.seconds[mine].tolist(), runs.open[mine].tolist(), strict=True
        )
    ]


@pytest.fixture
def data() -> Tables:
    return job_tables(
        [
            *nightly("short", "04:03", 7, 1.0, DAYS),
            *nightly("nightly", "02:00", 180, 2.0, DAYS),
            *nightly("late", "23:00", 180, 3.0, DAYS),
        ]
    )


@pytest.mark.parametrize("window_bytes", [1, 400 << 20])
def test_a_run_is_as_long_as_its_pod_was_seen_whatever_window_it_was_read_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Tables, window_bytes: int
) -> None:
    monkeypatch.setattr(history_files, "WINDOW_BYTES", window_bytes)
    history = read_history(data.write(tmp_path))
    assert runs_of(history, "short") == [(d * DAY + 4 * HOUR, 10 * MINUTE, False, False) for d in range(8)], (
        "seven minutes from 04:03, seen running at 04:05 and at 04:10"
    )
    assert [run[1:] for run in runs_of(history, "nightly")] == [(3 * HOUR, False, False)] * 8
    late = runs_of(history, "late")
    assert [run[1:] for run in late[:-1]] == [(3 * HOUR, False, False)] * 7, "midnight must not split a run"
    assert late[-1][1:] == (HOUR, False, True), "the end of the data is not the end of the run"


def test_runs_have_local_time_and_real_length_where_clocks_change(tmp_path: Path) -> None:
    days = ["2026-03-27", "2026-03-28", "2026-03-29", "2026-03-30"]
    # 01:30 in Berlin is 00:30 UTC before the change on the 29th, and 23:30 UTC the day before after it.
    starts = ["2026-03-27T00:30Z", "2026-03-28T00:30Z", "2026-03-29T00:30Z", "2026-03-29T23:30Z"]
    rows = [run_rows("CronJob/night", f"night-{s}", pd.Timestamp(s), 120, 1.0) for s in starts]
    data = job_tables(rows, days=6, start="2026-03-26")
    data.settings["time_zone"] = "Europe/Berlin"
    history = read_history(data.write(tmp_path))
    begin = history.days.index(pd.Timestamp(days[0]).date())
    runs = runs_of(history, "night")
    assert [seconds for _, seconds, *_ in runs] == [2 * HOUR] * 4
    assert [start for start, *_ in runs] == [(begin + i) * DAY + 85 * MINUTE for i in range(4)]


def test_a_gap_in_all_the_data_neither_splits_a_run_nor_ends_it(tmp_path: Path, data: Tables) -> None:
    time = data.usage["timestamp"]
    inside = (time >= "2026-03-04 03:00Z") & (time < "2026-03-04 04:00Z")
    until_end = (time >= "2026-03-06 04:00Z") & (time < "2026-03-06 06:00Z")
    data.usage = data.usage[~(inside | until_end)]
    runs = runs_of(read_history(data.write(tmp_path)), "nightly")
    assert runs[2][1:] == (3 * HOUR, False, False), "the pod was there before the gap and after it"
    assert runs[4][1:] == (2 * HOUR, False, True), "its end lies in the gap"


def test_before_a_midnight_nothing_of_later_runs_is_known(tmp_path: Path, data: Tables) -> None:
    history = read_history(data.write(tmp_path))
    known = history.before(3)
    assert int(known.runs.day.max()) == 2
    late = runs_of(known, "late")
    assert late[-1] == (2 * DAY + 23 * HOUR, HOUR, False, True)
    assert len(late) == 3
    recent = history.before(6, keep=2)
    assert runs_of(recent, "nightly") == [(d * DAY + 2 * HOUR, 3 * HOUR, False, False) for d in range(2)]
    longer = data.usage[data.usage["timestamp"] < "2026-03-05"]
    data.usage = longer
    same = read_history(data.write(tmp_path / "shorter"))
    for name in ("start", "seconds", "open"):
        np.testing.assert_array_equal(getattr(same.runs, name), getattr(known.runs, name), err_msg=name)
