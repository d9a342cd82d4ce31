"""Forecasts come back as they were issued, whatever happened to some of the files."""

from __future__ import annotations

import io
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from base.object_store import ObjectStore, open_store
from forecast.calendar import Calendar
from forecast.fit import fit
from forecast.model import PeakModel
from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from forecast.resources import CPU, LOG
from forecast.service_key import ServiceKey
from tests.synthetic import synthetic_history
from trainer.issued_forecasts import ISSUED_DAYS, KEPT_DAYS, load_issued, store_issued

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


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


def version(name: str, *, after: timedelta = 2 * HOUR) -> str:
    """A version published so long after the midnight (UTC) of the model's cut-off."""
    return f"{model().calendar.midnight(model().first_day) + after:%Y%m%dT%H%M%S%fZ}-{name}"


def names(versions: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one.partition("-")[2] for one in versions)


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path) if request.param == "local" else f"memory://{tmp_path.name}")


def test_what_comes_back_is_what_was_published(store: ObjectStore) -> None:
    store_issued(store, model(), version("v1"))
    days = model().calendar.horizon(model().first_day, ISSUED_DAYS)
    issued = load_issued(store, days)
    expected = np.stack([model().service_peaks(day) for day in days], axis=2)
    np.testing.assert_allclose(issued.peaks, expected, rtol=1e-6)
    assert np.isnan(issued.peaks[0, LOG]).all() and np.isfinite(issued.peaks[1:]).all()
    assert issued.services == model().services and issued.versions == (version("v1"),) * 7
    assert issued.lead_days.tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_each_day_has_the_forecast_of_the_latest_cut_off_before_it(store: ObjectStore) -> None:
    for night, factor in enumerate((1.0, 2.0, 4.0)):
        store_issued(store, times(factor, days_later=night), version(f"v{night}", after=night * DAY + 2 * HOUR))
    first = model().first_day
    issued = load_issued(store, [first - DAY, first, first + DAY, first + 2 * DAY, first + 5 * DAY, first + 30 * DAY])
    assert names(issued.versions) == ("", "v0", "v1", "v2", "v2", "")
    assert issued.lead_days.tolist() == [0, 1, 1, 1, 4, 0]
    assert np.isnan(issued.peaks[:, :, [0, 5]]).all()
    expected = times(4.0, days_later=2).service_peaks(first + 2 * DAY)[:, CPU]
    np.testing.assert_allclose(issued.peaks[:, CPU, 3], expected, rtol=1e-6)
    week_ahead = load_issued(store, [first + 6 * DAY, first + 7 * DAY], min_lead_days=7)
    assert names(week_ahead.versions) == ("v0", "v1") and week_ahead.lead_days.tolist() == [7, 7]


def test_of_two_models_of_one_night_the_later_one_counts(store: ObjectStore) -> None:
    store_issued(store, times(2.0), version("aa", after=2 * HOUR))
    store_issued(store, times(1.0), version("bb", after=HOUR))
    assert names(load_issued(store, [model().first_day]).versions) == ("aa",)


def test_what_was_published_after_a_day_was_not_issued_for_it(store: ObjectStore) -> None:
    """Old days fitted again into the same store: newer versions of the same cut-offs, which knew what came."""
    for night in range(3):
        store_issued(store, times(1.0, days_later=night), version(f"live{night}", after=night * DAY + 2 * HOUR))
        store_issued(store, times(9.0, days_later=night), version(f"late{night}", after=30 * DAY + night * HOUR))
    days = [model().first_day + night * DAY for night in range(4)]
    issued = load_issued(store, days)
    assert names(issued.versions) == ("live0", "live1", "live2", "live2")
    np.testing.assert_allclose(issued.peaks[:, :, 1], times(1.0, days_later=1).service_peaks(days[1]), rtol=1e-6)
    recorded = load_issued(store, days, after_the_fact=True)
    assert names(recorded.versions) == ("late0", "late1", "late2", "late2")
    np.testing.assert_allclose(recorded.peaks[:, :, 1], times(9.0, days_later=1).service_peaks(days[1]), rtol=1e-6)


@pytest.mark.parametrize(
    ("time_zone", "last_hour"),
    [("UTC", 23), ("Asia/Tokyo", 14), ("America/Los_Angeles", 30), ("Pacific/Kiritimati", 9), (None, 35)],
)
def test_a_day_is_over_when_it_is_over_where_the_cluster_counts_its_days(
    store: ObjectStore, time_zone: str | None, last_hour: int
) -> None:
    """Counted from the day's midnight in UTC; of a file without a time zone, when it is over everywhere."""
    for hour in (last_hour, last_hour + 1):
        local = replace(model(), calendar=Calendar(time_zone or "UTC"))
        name = store_issued(store, local, version(f"h{hour}", after=hour * HOUR))
        if time_zone is None:
            table = pq.read_table(io.BytesIO(store.get(f"issued/{name}"))).replace_schema_metadata()
            buffer = io.BytesIO()
            pq.write_table(table, buffer)
            store.put(f"issued/{name}", buffer.getvalue())
    assert names(load_issued(store, [model().first_day]).versions) == (f"h{last_hour}",)


def test_a_version_that_names_no_time_counts_in_runs_on_recorded_days_alone(store: ObjectStore) -> None:
    for name in ("v1", "20261399T990000000000Z-ab"):
        store_issued(store, model(), name)
    assert load_issued(store, [model().first_day]).versions == ("",)
    assert load_issued(store, [model().first_day], after_the_fact=True).versions == ("v1",)


def test_the_registry_names_versions_by_the_time_that_counts(tmp_path: Path) -> None:
    def published_at(now: datetime) -> ObjectStore:
        url = str(tmp_path / f"{now:%d}")
        store_issued(open_store(url), model(), Registry(url, clock=lambda: now).publish(artefact_of(model(), now)))
        return open_store(url)

    for days_later, expected in ((0, True), (2, False)):
        now = model().calendar.midnight(model().first_day).astimezone(UTC) + days_later * DAY + 2 * HOUR
        issued = load_issued(published_at(now), [model().first_day])
        assert issued.versions[0].startswith(f"{now:%Y%m%dT%H}") is expected


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not a table" * 100])
def test_a_damaged_file_is_left_out_and_the_one_before_it_used(
    store: ObjectStore, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store_issued(store, model(), version("v0"))
    name = store_issued(store, times(2.0, days_later=1), version("v1", after=DAY + 2 * HOUR))
    store.put(f"issued/{name}", content)
    store.put("issued/2026-99-99-v2.parquet", b"")
    store.put("issued/notes.txt", b"")
    with caplog.at_level(logging.WARNING):
        issued = load_issued(store, [model().first_day + DAY, model().first_day + 2 * DAY])
    assert names(issued.versions) == ("v0", "v0")
    assert [record.message for record in caplog.records] == ["issued forecasts are left out"]  # said once, not per day


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
    assert issued.services == () and issued.peaks.shape == (0, 5, 1, 2) and names(issued.versions) == ("",)


def test_aligned_puts_services_in_the_order_asked_for(store: ObjectStore) -> None:
    store_issued(store, model(), version("v0"))
    issued = load_issued(store, [model().first_day])
    wanted = (model().services[2], ServiceKey("shop", "Deployment", "unknown"), model().services[0])
    aligned = issued.aligned(wanted)
    assert aligned.services == wanted
    np.testing.assert_array_equal(aligned.peaks[[0, 2]], issued.peaks[[2, 0]])
    assert np.isnan(aligned.peaks[1]).all()
