"""Forecasts come back as they were issued, whatever happened to some of the files."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from forecast.fit import fit
from forecast.model import PeakModel
from forecast.object_store import ObjectStore, open_store
from forecast.resources import CPU, LOG
from forecast.service_key import ServiceKey
from tests.synthetic import synthetic_history
from trainer.issued import ISSUED_DAYS, KEPT_DAYS, load_issued, store_issued

DAY = timedelta(days=1)


@lru_cache(maxsize=1)
def model() -> PeakModel:
    """Fitted on two weeks; nobody ever measured the log of the first service."""
    history = synthetic_history(n_days=14, n_services=3)
    usage = history.usage_per_pod.copy()
    usage[0, LOG] = np.nan
    fitted = fit(replace(history, usage_per_pod=usage))
    unknown = {name: getattr(fitted, name).copy() for name in ("usage_dated", "usage_day_type")}
    for array in unknown.values():
        array[0, LOG] = np.nan
    return replace(fitted, **unknown)


def times(factor: float, *, days_later: int = 0) -> PeakModel:
    """The model with all peaks multiplied, and its cut-off moved."""
    return replace(
        model(), peak_factor=model().peak_factor * np.float32(factor), first_day=model().first_day + days_later * DAY
    )


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path) if request.param == "local" else f"memory://{tmp_path.name}")


def test_what_comes_back_is_what_was_published(store: ObjectStore) -> None:
    store_issued(store, model(), "v1")
    days = model().calendar.horizon(model().first_day, ISSUED_DAYS)
    issued = load_issued(store, days)
    expected = np.stack([model().service_peaks(day) for day in days], axis=2)
    np.testing.assert_allclose(issued.peaks, expected, rtol=1e-6)
    assert np.isnan(issued.peaks[0, LOG]).all() and np.isfinite(issued.peaks[1:]).all()
    assert issued.services == model().services and issued.versions == ("v1",) * 7
    assert issued.lead_days.tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_each_day_has_the_forecast_of_the_latest_cut_off_before_it(store: ObjectStore) -> None:
    for night, factor in enumerate((1.0, 2.0, 4.0)):
        store_issued(store, times(factor, days_later=night), f"v{night}")
    first = model().first_day
    issued = load_issued(store, [first - DAY, first, first + DAY, first + 2 * DAY, first + 5 * DAY, first + 30 * DAY])
    assert issued.versions == ("", "v0", "v1", "v2", "v2", "")
    assert issued.lead_days.tolist() == [0, 1, 1, 1, 4, 0]
    assert np.isnan(issued.peaks[:, :, [0, 5]]).all()
    expected = times(4.0, days_later=2).service_peaks(first + 2 * DAY)[:, CPU]
    np.testing.assert_allclose(issued.peaks[:, CPU, 3], expected, rtol=1e-6)
    week_ahead = load_issued(store, [first + 6 * DAY, first + 7 * DAY], min_lead_days=7)
    assert week_ahead.versions == ("v0", "v1") and week_ahead.lead_days.tolist() == [7, 7]


def test_of_two_models_of_one_night_the_later_one_counts(store: ObjectStore) -> None:
    store_issued(store, times(2.0), "20260519T020000000000Z-aa")
    store_issued(store, times(1.0), "20260519T010000000000Z-bb")
    assert load_issued(store, [model().first_day]).versions == ("20260519T020000000000Z-aa",)


def test_storing_again_changes_nothing(store: ObjectStore) -> None:
    name = store_issued(store, model(), "v1")
    before = store.get(f"issued/{name}")
    assert store_issued(store, model(), "v1") == name
    assert store.get(f"issued/{name}") == before and store.files("issued") == [name]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not a table" * 100])
def test_a_damaged_file_is_left_out_and_the_one_before_it_used(
    store: ObjectStore, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store_issued(store, model(), "v0")
    name = store_issued(store, times(2.0, days_later=1), "v1")
    store.put(f"issued/{name}", content)
    store.put("issued/2026-99-99-v2.parquet", b"")
    store.put("issued/notes.txt", b"")
    with caplog.at_level(logging.WARNING):
        issued = load_issued(store, [model().first_day + DAY, model().first_day + 2 * DAY])
    assert issued.versions == ("v0", "v0")
    assert [record.message for record in caplog.records] == ["issued forecasts are left out"]  # said once, not per day


def test_a_truncated_file_is_left_out(store: ObjectStore) -> None:
    name = store_issued(store, model(), "v0")
    content = store.get(f"issued/{name}")
    for length in range(0, len(content), 211):
        store.put(f"issued/{name}", content[:length])
        assert load_issued(store, [model().first_day]).versions == ("",)


def test_old_files_are_deleted(store: ObjectStore) -> None:
    for days_ago in (0, 1, KEPT_DAYS, KEPT_DAYS + 1, 400):
        store_issued(store, times(1.0, days_later=-days_ago), f"v{days_ago}")
    assert len(store.files("issued")) == 5  # nothing is older than KEPT_DAYS seen from a model of long ago
    store_issued(store, model(), "again")
    assert {name.partition("-v")[2] for name in store.files("issued")} == {
        "0.parquet", "1.parquet", f"{KEPT_DAYS}.parquet", "",
    }  # fmt: skip


def test_nothing_issued_is_no_error(store: ObjectStore) -> None:
    issued = load_issued(store, [model().first_day])
    assert issued.services == () and issued.peaks.shape == (0, 5, 1, 2) and issued.versions == ("",)


def test_aligned_puts_services_in_the_order_asked_for(store: ObjectStore) -> None:
    store_issued(store, model(), "v0")
    issued = load_issued(store, [model().first_day])
    wanted = (model().services[2], ServiceKey("shop", "Deployment", "unknown"), model().services[0])
    aligned = issued.aligned(wanted)
    assert aligned.services == wanted
    np.testing.assert_array_equal(aligned.peaks[[0, 2]], issued.peaks[[2, 0]])
    assert np.isnan(aligned.peaks[1]).all()
