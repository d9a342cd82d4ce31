"""Cells go into the journal at once, and into the history when they are stored or their day is over."""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from forecast.calendar import Calendar
from trainer.history.history_layout import Layout
from trainer.own_history_store import OwnHistory, last_read
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.sampling.cells import Usage
from trainer.sampling.growing_history import GrowingHistory
from trainer.sampling.journal import Cell, Journal, NodeRecord, PodRecord, days_of_journals, is_recorded

_DAY = date(2026, 11, 30)
_MIDNIGHT = datetime(2026, 11, 30, tzinfo=UTC)
_POD = PodRecord(7, "shop", "cart-0", "u0", "n1", ("StatefulSet", "cart"), None, (0.5, 1e9))
_NODE = NodeRecord("n1", (4.0, 16e9), (3.8, 15e9))


def _growing(history: Path, now: datetime, *, keep_days: int = 30) -> GrowingHistory:
    made = GrowingHistory(history, SourceOptions(), Calendar("UTC", None), keep_days=keep_days)
    made.resume(now)
    return made


def _add(to: GrowingHistory, at: datetime) -> None:
    to.add(int(at.timestamp()), [_POD], [_NODE], {("shop", "cart-0", "n1"): Usage(0.25, 5e8)}, {"n1": Usage(1.0, 3e9)})


def _rows(history: Path, day: date) -> int:
    return int(pq.read_metadata(history / Layout.usage / f"{day}.parquet").num_rows)


def test_a_day_that_is_over_is_in_the_history_and_its_journal_is_gone(tmp_path: Path) -> None:
    growing = _growing(tmp_path, _MIDNIGHT)
    for number in range(3):
        _add(growing, _MIDNIGHT + timedelta(hours=23, minutes=45 + 5 * number))
    assert list(days_of_journals(tmp_path)) == [_DAY] and is_recorded(str(tmp_path))
    _add(growing, _MIDNIGHT + timedelta(days=1))
    assert list(days_of_journals(tmp_path)) == [_DAY + timedelta(days=1)]
    assert _rows(tmp_path, _DAY) == 3
    assert OwnHistory(str(tmp_path)).read_days()[_DAY].settled(_DAY)


def test_what_a_killed_recorder_left_of_days_before_is_taken_up(tmp_path: Path) -> None:
    _add(_growing(tmp_path, _MIDNIGHT), _MIDNIGHT + timedelta(hours=9))
    later = _MIDNIGHT + timedelta(days=2)
    growing = _growing(tmp_path, later)
    assert _rows(tmp_path, _DAY) == 1 and not list(days_of_journals(tmp_path))
    assert growing.n_days == 1 and growing.store(later) is None
    assert not is_recorded(str(tmp_path)) and not is_recorded("s3://bucket/history")


def test_of_today_the_journal_is_read_and_goes_on(tmp_path: Path) -> None:
    _add(_growing(tmp_path, _MIDNIGHT), _MIDNIGHT + timedelta(hours=9))
    growing = _growing(tmp_path, _MIDNIGHT + timedelta(hours=10))
    _add(growing, _MIDNIGHT + timedelta(hours=10))
    assert growing.store(_MIDNIGHT + timedelta(hours=11)) == _MIDNIGHT + timedelta(hours=10, minutes=5)
    assert _rows(tmp_path, _DAY) == 2 and last_read(tmp_path) == _MIDNIGHT + timedelta(hours=10, minutes=5)
    pods = [record for record in Journal(tmp_path, _DAY).open() if isinstance(record, PodRecord)]
    assert [pod.number for pod in pods] == [0]


def test_days_that_are_too_old_are_deleted(tmp_path: Path) -> None:
    growing = _growing(tmp_path, _MIDNIGHT, keep_days=2)
    for number in range(5):
        _add(growing, _MIDNIGHT + timedelta(days=number))
    assert min(OwnHistory(str(tmp_path)).read_days()) == _DAY + timedelta(days=2)


def test_what_could_not_be_written_is_written_with_the_next_cell(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    growing = _growing(tmp_path, _MIDNIGHT)
    path = tmp_path / "recording" / f"{_DAY}.cells"
    path.parent.mkdir()
    _add(growing, _MIDNIGHT)
    path.rename(path.with_suffix(".aside"))
    path.mkdir()  # nothing can be appended to it
    with caplog.at_level(logging.WARNING):
        _add(growing, _MIDNIGHT + timedelta(minutes=5))
    assert "kept in memory" in caplog.text
    path.rmdir()
    path.with_suffix(".aside").rename(path)
    _add(growing, _MIDNIGHT + timedelta(minutes=10))
    cells = [record for record in Journal(tmp_path, _DAY).open() if isinstance(record, Cell)]
    assert [cell.start - int(_MIDNIGHT.timestamp()) for cell in cells] == [0, 300, 600]
