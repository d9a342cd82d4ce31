"""limit_hits.parquet: read onto local half hours; a history without it is as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from base.errors import InputError
from forecast.resources import CPU
from tests.trainer.history.histories import tables
from trainer.history.cleaning import CleaningCause
from trainer.history.files import HistoryFiles, read_history


def hits(*rows: tuple[str, str, float, float]) -> pd.DataFrame:
    """rows: time, pod, throttled share, memory at a kill"""
    frame = pd.DataFrame(rows, columns=["timestamp", "pod", "throttled_share", "oom_memory_bytes"])
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], utc=True).astype("datetime64[ms, UTC]")
    return frame.assign(namespace=tables().usage["namespace"].iloc[0])


def written(directory: Path, frame: pd.DataFrame, **settings: Any) -> Path:
    path = tables(settings=settings).write(directory)
    frame.to_parquet(path / "limit_hits.parquet", index=False)
    return path


def test_hits_lie_on_local_half_hours(tmp_path: Path) -> None:
    frame = hits(
        ("2026-03-02 23:30", "cart-0", 0.5, np.nan),  # 00:30 in Berlin
        ("2026-03-02 23:30", "cart-1", 0.0, np.nan),
        ("2026-03-03 11:00", "db-0", np.nan, 3e8),
        ("2026-03-03 11:00", "gone-0", 0.9, np.nan),
        ("2031-03-03 11:00", "db-0", 0.9, np.nan),
    )
    history = read_history(written(tmp_path, frame, time_zone="Europe/Berlin"))
    found, day = history.limit_hits, [str(one) for one in history.days].index("2026-03-03")
    assert found is not None
    assert found.service.tolist() == [0, 1] and found.slot.tolist() == [48 * day + 1, 48 * day + 24]
    np.testing.assert_allclose(found.throttled, [0.25, 0.0])  # the mean of two pods
    np.testing.assert_allclose(found.oom_bytes, [np.nan, 3e8])
    assert np.isfinite(found.cores[0]) and found.cores[0] > 0 and np.isnan(found.cores[1])
    assert abs(found.cores[0] - history.usage_per_pod[0, CPU, day, 1]) < 2 * history.usage_per_pod[0, CPU, day, 1]
    assert found.seen[0].tolist() == [one == day for one in range(history.n_days)] and not found.seen[1].any()


def test_what_cannot_be_true_is_unknown_and_counted(tmp_path: Path) -> None:
    frame = hits(
        ("2026-03-02 10:00", "db-0", np.inf, np.nan),
        ("2026-03-02 11:00", "db-0", -0.5, -3.0),
        ("2026-03-02 12:00", "db-0", 1.02, np.nan),  # two counters, read one after the other
        ("2026-03-02 12:00", "db-0", 0.7, 5e8),  # twice
    )
    files = HistoryFiles.open(written(tmp_path, frame))
    found = files.history().limit_hits
    assert found is not None and found.slot.tolist() == [24]
    assert (found.throttled[0], found.oom_bytes[0]) == (1.0, np.float32(5e8))
    counts = files.report.counts
    assert counts["limit_hits.parquet", CleaningCause.NOT_FINITE] == 1
    assert counts["limit_hits.parquet", CleaningCause.NEGATIVE] == 2


def test_a_history_without_the_file_is_as_before(tmp_path: Path) -> None:
    old = read_history(tables().write(tmp_path / "old"))
    empty = read_history(written(tmp_path / "empty", hits()))
    assert old.limit_hits is None
    assert empty.limit_hits is not None and not empty.limit_hits.seen.any() and not len(empty.limit_hits.slot)


def test_a_directory_of_days_without_any_is_as_before(tmp_path: Path) -> None:
    path = tables().write(tmp_path)
    (path / "limit_hits.parquet").mkdir()
    assert read_history(path).limit_hits is None


def test_a_column_of_another_type_is_refused(tmp_path: Path) -> None:
    frame = hits(("2026-03-02 10:00", "db-0", 0.5, np.nan)).astype({"throttled_share": str})
    with pytest.raises(InputError, match=r"column throttled_share is .*it must be a number"):
        read_history(written(tmp_path, frame))
