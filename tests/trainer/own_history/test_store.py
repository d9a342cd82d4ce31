"""The growing history: every day once, whatever happens in between."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from base.errors import InputError
from base.object_store import TEMPORARY
from forecast.calendar import Calendar
from forecast.history import History
from forecast.resources import CPU
from tests.trainer.own_history.days import DAY, day_tables, hours_of, midnight
from trainer.history.cleaning import CleaningCause
from trainer.history.files import HistoryFiles, read_history
from trainer.own_history_store import SETTLE, OwnHistory, last_read

DAYS = [DAY + timedelta(days=i) for i in range(3)]


def filled(url: str, *, hours_after: float = 3) -> OwnHistory:
    own = OwnHistory(url)
    own.begin(Calendar("Europe/Berlin"), 1800, None)
    for day in DAYS:
        own.append(day_tables(day), read_until=midnight(day, 24 + hours_after))
    return own


def history_of(own: OwnHistory) -> History:
    with own.local() as directory:
        return read_history(directory)


def killed_after(n_writes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies instead of putting one more file in its place."""
    replace, left = os.replace, iter(range(n_writes))

    def dies(source: str, target: str) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", dies)


def test_temporary_files_of_killed_runs_are_removed_after_a_day(tmp_path: Path) -> None:
    """Failed before: they stayed beside the days for ever."""
    own = filled(str(tmp_path))
    left = tmp_path / "usage.parquet" / f"{TEMPORARY}left"
    left.write_bytes(b"half")
    own.remove_leftovers(midnight(DAY, 24))
    assert left.exists()
    os.utime(left, times=(0, 0))
    own.remove_leftovers(midnight(DAY, 24))
    assert not left.exists()


def test_days_read_late_enough_are_not_read_again(tmp_path: Path) -> None:
    own = filled(str(tmp_path))
    tomorrow = DAYS[-1] + timedelta(days=1)
    assert list(own.read_days()) == DAYS
    assert own.to_read([*DAYS, tomorrow]) == [tomorrow]


def test_a_day_read_before_late_samples_can_have_come_is_read_again(tmp_path: Path) -> None:
    own = filled(str(tmp_path), hours_after=SETTLE.total_seconds() / 3600 - 0.1)
    assert own.to_read(DAYS) == DAYS


def test_a_day_of_which_the_server_has_forgotten_the_morning_keeps_it(tmp_path: Path) -> None:
    own = OwnHistory(str(tmp_path))
    own.append(day_tables(DAY, until=4), read_until=midnight(DAY, 4))
    own.append(day_tables(DAY, first=3), read_until=midnight(DAY, 27))
    own.append(day_tables(DAY, first=20), read_until=midnight(DAY, 27))
    assert np.isfinite(history_of(own).replicas).all()


def test_it_is_a_history_directory_like_any_other(tmp_path: Path) -> None:
    history = history_of(filled(str(tmp_path)))
    assert history.calendar == Calendar("Europe/Berlin")
    assert {str(service) for service in history.services} == {"shop/Deployment/cart", "shop/StatefulSet/search"}
    assert np.nanmax(history.replicas) == 2
    np.testing.assert_array_equal(history.capacity, 100.0)


def test_an_object_store_gives_the_same_history(tmp_path: Path) -> None:
    remote = filled("memory://own-history/test")
    local = filled(str(tmp_path))
    assert history_of(remote).digest() == history_of(local).digest()
    assert remote.to_read(DAYS) == []


@pytest.mark.parametrize("n_writes", range(5))
def test_a_run_killed_between_any_two_files_loses_nothing(
    n_writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = filled(str(tmp_path))
    expected = history_of(own).digest()
    killed_after(n_writes, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        own.append(day_tables(DAYS[-1]), read_until=midnight(DAYS[-1], 30))
    monkeypatch.undo()
    assert history_of(own).digest() == expected
    own.append(day_tables(DAYS[-1]), read_until=midnight(DAYS[-1], 30))
    assert history_of(own).digest() == expected


@pytest.mark.parametrize("n_writes", range(5))
def test_a_first_reading_that_was_killed_keeps_what_it_wrote_of_hours_the_server_forgot(
    n_writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = OwnHistory(str(tmp_path))
    killed_after(n_writes, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        own.append(day_tables(DAY, until=4), read_until=midnight(DAY, 4))
    monkeypatch.undo()
    own.append(day_tables(DAY, first=3), read_until=midnight(DAY, 27))
    with own.local() as directory:
        hours = hours_of(pq.read_table(directory / "usage.parquet" / f"{DAY}.parquet"))
    assert hours[0] == (0 if n_writes else 3)
    assert hours[-1] == 23.5


def test_a_damaged_file_of_capacities_costs_no_usage(tmp_path: Path) -> None:
    own = OwnHistory(str(tmp_path))
    own.append(day_tables(DAY, until=4), read_until=midnight(DAY, 4))
    (tmp_path / "capacity.parquet" / f"{DAY}.parquet").write_bytes(b"PAR1")
    own.append(day_tables(DAY, first=3), read_until=midnight(DAY, 27))
    assert np.isfinite(history_of(own).replicas).all()


def test_old_days_are_forgotten(tmp_path: Path) -> None:
    own = filled(str(tmp_path))
    assert own.forget_before(DAYS[1]) == [DAYS[0]]
    assert list(own.read_days()) == DAYS[1:]
    assert sorted(path.name for path in tmp_path.rglob(f"{DAYS[0]}*")) == []
    assert own.forget_before(DAYS[1]) == []


@pytest.mark.parametrize(
    "ledger",
    [
        "{]",
        "[]",
        '{"days": {"2026-05-04": {"read_until": "2026-05-06T00:00:00", "recorded_share": 0}}}',  # no time zone
        '{"days": {"yesterday": {"read_until": "2026-05-06T00:00:00+00:00", "recorded_share": 0}}}',
    ],
)
def test_a_damaged_ledger_means_reading_again_and_merging(ledger: str, tmp_path: Path) -> None:
    own = filled(str(tmp_path))
    before = history_of(own).digest()
    (tmp_path / "days.json").write_text(ledger)
    assert own.to_read(DAYS) == DAYS
    own.append(day_tables(DAYS[0]), read_until=midnight(DAYS[0], 30))
    assert own.to_read(DAYS) == DAYS[1:]
    assert history_of(own).digest() == before


def test_a_damaged_day_is_replaced(tmp_path: Path) -> None:
    own = filled(str(tmp_path))
    before = history_of(own).digest()
    file = tmp_path / "usage.parquet" / f"{DAY}.parquet"
    file.write_bytes(file.read_bytes()[:200])
    own.append(day_tables(DAY), read_until=midnight(DAY, 30))
    assert history_of(own).digest() == before


def test_a_deleted_day_is_read_again(tmp_path: Path) -> None:
    own = filled(str(tmp_path))
    (tmp_path / "usage.parquet" / f"{DAY}.parquet").unlink()
    assert own.to_read(DAYS) == [DAY]


def test_an_exported_history_is_not_grown(tmp_path: Path) -> None:
    filled(str(tmp_path / "own"))
    exported = tmp_path / "exported"
    exported.mkdir()
    (exported / "usage.parquet").write_bytes(b"")
    with pytest.raises(InputError, match=r"finished history .*another directory"):
        OwnHistory(str(exported)).check_growable()
    OwnHistory(str(tmp_path / "own")).check_growable()


@pytest.mark.parametrize(("hour", "zone", "last"), [(18, "UTC", 2), (18, "Asia/Tokyo", 3), (2, "America/New_York", 1)])
def test_the_day_that_is_not_over_is_not_learned_from(hour: int, zone: str, last: int, tmp_path: Path) -> None:
    """At 18:00 UTC the day is over in Tokyo; at 02:00 UTC the day before is not over in New York."""
    own = filled(str(tmp_path))
    today = DAYS[-1] + timedelta(days=1)
    own.append(day_tables(today, until=hour), read_until=midnight(today, hour))
    with own.local() as directory:
        read_until = last_read(directory)
        assert read_until == midnight(today, hour)
        days = HistoryFiles.open(directory, calendar=Calendar(zone), until=read_until).days
    assert days[-1] == [*DAYS, today][last]


def test_other_histories_have_no_last_reading(tmp_path: Path) -> None:
    assert last_read(tmp_path) is None


def test_a_node_rebuilt_between_two_nights_is_judged_by_what_it_had_each_day(tmp_path: Path) -> None:
    """Failed before: the last file's capacity held for all days, and what was honest under the first was dropped."""
    own = OwnHistory(str(tmp_path))
    for day, cores in zip(DAYS, (100.0, 100.0, 5.0), strict=True):
        capacity = pd.DataFrame({"node": ["node-0", "node-1"], "cpu_cores": cores})
        tables = replace(day_tables(day), capacity=pa.Table.from_pandas(capacity, preserve_index=False))
        own.append(tables, read_until=midnight(day, 27))
    files = HistoryFiles.open(tmp_path)
    history = files.history()
    assert files.report.total(CleaningCause.ABOVE_CAPACITY) == 0
    assert history.capacity[:, CPU].tolist() == [5.0, 5.0]
    assert history.capacity_of_days[0, CPU].tolist() == [100.0, 100.0, 100.0]


def test_limit_hits_are_kept_with_their_days_and_go_with_them(tmp_path: Path) -> None:
    own = filled(str(tmp_path))
    own.append(day_tables(level=2.0), read_until=midnight(DAY, 27))
    history = history_of(own)
    assert history.limit_hits is not None
    shares = dict(zip(history.limit_hits.slot.tolist(), history.limit_hits.throttled.tolist(), strict=True))
    assert shares[4] == pytest.approx(0.2 / 2) and shares[4 + 96] == pytest.approx(0.1 / 2)  # one pod of two
    own.forget_before(DAYS[1])
    assert sorted(path.stem for path in (tmp_path / "limit_hits.parquet").iterdir()) == [str(day) for day in DAYS[1:]]


def test_days_of_an_older_release_have_none_and_are_not_read_again(tmp_path: Path) -> None:
    own = filled(str(tmp_path))
    for path in (tmp_path / "limit_hits.parquet").iterdir():
        path.unlink()
    assert own.to_read(DAYS) == []
    assert history_of(own).limit_hits is None
    own.append(day_tables(DAYS[2]), read_until=midnight(DAYS[2], 27))
    hits = history_of(own).limit_hits
    assert hits is not None and np.flatnonzero(hits.seen.any(axis=0)).tolist() == [2]
