"""What is learned of Job owners: lengths, starts and usage, and what nobody has seen yet."""

from __future__ import annotations

from dataclasses import fields
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast import run_forecast
from forecast.calendar import Calendar, DayType
from forecast.run_forecast import RunForecast, forecast_runs
from forecast.service_key import ServiceKey
from tests.forecast.job_histories import DAY, HOUR, NIGHTLY, nights, with_runs
from tests.synthetic import synthetic_history


def learned(
    runs: list[tuple[int, float]], *, n_days: int = 28, owner: ServiceKey = NIGHTLY, open_: tuple[int, ...] = ()
) -> RunForecast:
    """What is learned of six services of which the last has these runs."""
    return forecast_runs(with_runs(synthetic_history(n_days=n_days), 5, runs, owner=owner, open_=open_))


def test_a_nightly_job_is_known_by_its_length_its_start_and_its_load() -> None:
    runs = learned(nights(range(28)))
    assert runs.seconds[-1].tolist() == [3 * HOUR, 3 * HOUR]
    assert runs.count[-1] == 28
    np.testing.assert_allclose(runs.usage[-1], 2.0)
    expected = np.zeros((4, 48))
    expected[:, 4] = 1.0
    np.testing.assert_allclose(runs.starts[-1], expected)


def test_services_whose_pods_run_on_and_on_have_no_runs() -> None:
    runs = learned(nights(range(28)))
    assert np.isnan(runs.seconds[:-1]).all()
    assert np.isnan(runs.usage[:-1]).all()
    assert not runs.count[:-1].any()
    assert not runs.starts[:-1].any()
    assert not runs.ended[:-1].any()


def test_a_job_of_sundays_is_expected_on_sundays_only() -> None:
    runs = learned(nights(range(6, 28, 7)))
    np.testing.assert_allclose(runs.starts[-1].sum(axis=1)[: DayType.HOLIDAY], [0, 0, 1])
    assert runs.starts[-1, DayType.HOLIDAY, 4] == 1, "a holiday that was never seen is taken for a Sunday"


def test_a_single_night_is_expected_again() -> None:
    runs = learned(nights(range(27, 28)))
    assert runs.seconds[-1].tolist() == [3 * HOUR, 6 * HOUR], "the longest of one run is soon passed"
    assert runs.starts[-1, :, 4].tolist() == [1, 1, 1, 1], "days before the first one say nothing"
    assert not runs.ended[-1]


def test_a_bare_job_that_ran_once_is_not_expected_again() -> None:
    once = ServiceKey("shop", "Job", "migrate")
    runs = learned(nights(range(27, 28)), owner=once)
    assert runs.seconds[-1, 0] == 3 * HOUR
    assert runs.ended[-1]
    assert not runs.starts[-1].any()
    again = learned(nights(range(20, 28)), owner=once)
    assert again.starts[-1, 0, 4] == pytest.approx(1.0), "something creates it every night"


@pytest.mark.parametrize(("last", "ended"), [(28, False), (27, False), (26, True), (10, True)])
def test_an_owner_that_misses_more_than_two_of_its_pauses_is_gone(last: int, ended: bool) -> None:
    runs = learned(nights(range(last - 7, last)), n_days=28)
    assert bool(runs.ended[-1]) == ended
    assert (runs.starts[-1].sum() == 0) == bool(runs.ended[-1])
    assert runs.seconds[-1, 0] == 3 * HOUR, "how long its pods ran stays known"


def test_a_run_that_is_cut_off_teaches_no_short_length() -> None:
    cut = learned([*nights(range(27), hour=23), (27 * DAY + 23 * HOUR, HOUR)], open_=(27,))
    assert cut.seconds[-1].tolist() == [3 * HOUR, 3 * HOUR]
    assert cut.count[-1] == 27
    assert cut.starts[-1, 0, 46] == pytest.approx(1.0), "it did start"
    longer = learned([*nights(range(10, 20), seconds=HOUR), (20 * DAY, 7.9 * DAY)], open_=(10,))
    assert longer.seconds[-1, 0] == HOUR
    assert longer.seconds[-1, 1] > HOUR, "it already ran longer than the others"


def test_a_run_whose_end_nobody_saw_has_no_length_yet() -> None:
    runs = learned([(27 * DAY + 23 * HOUR, HOUR)], open_=(0,))
    assert np.isnan(runs.seconds[-1]).all()
    assert runs.count[-1] == 0
    assert runs.starts[-1, 0, 46] == 1
    assert runs.usage[-1, 0] == 2.0


def test_a_schedule_that_was_moved_is_soon_followed() -> None:
    runs = learned([*nights(range(23), hour=2), *nights(range(23, 28), hour=5)])  # three workdays and a weekend ago
    assert runs.starts[-1, DayType.WORKDAY, 10] == pytest.approx(0.5, abs=0.01)
    assert runs.starts[-1, DayType.SUNDAY, 10] == pytest.approx(0.34, abs=0.01)
    np.testing.assert_allclose(runs.starts[-1].sum(axis=1), 1.0)


def test_many_owners_are_read_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    history = synthetic_history(n_services=7)
    for service, hour in enumerate((1, 2, 5, 9, 23)):
        owner = ServiceKey("shop", "CronJob", f"job-{service}")
        history = with_runs(history, service, nights(range(20 + service, 28), hour=hour), owner=owner)
    at_once = forecast_runs(history)
    monkeypatch.setattr(run_forecast, "_OWNERS_AT_ONCE", 2)
    by_blocks = forecast_runs(history)
    for field in fields(RunForecast):
        np.testing.assert_array_equal(getattr(by_blocks, field.name), getattr(at_once, field.name))


@settings(max_examples=40, deadline=None)
@given(data=st.data(), n_days=st.integers(1, 35), n_runs=st.integers(0, 60), cron=st.booleans())
def test_whatever_was_seen_the_figures_make_sense(data: st.DataObject, n_days: int, n_runs: int, cron: bool) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    start = np.sort(rng.integers(0, n_days * DAY // 300, n_runs) * 300)
    seconds = np.minimum(300 * (1 + rng.geometric(0.02, n_runs)), n_days * DAY - start).astype(float)
    is_open = tuple(np.flatnonzero(start + seconds >= n_days * DAY).tolist())
    owner = ServiceKey("shop", "CronJob" if cron else "Job", "any")
    history = with_runs(
        synthetic_history(
            n_days=n_days,
            first_day=date(2026, 5, 4) + timedelta(days=int(rng.integers(7))),
            calendar=Calendar("Europe/Berlin", "DE"),
        ),
        5,
        list(zip(start.tolist(), seconds.tolist(), strict=True)),
        owner=owner,
        open_=is_open,
    )
    runs = forecast_runs(history)
    typical, long = runs.seconds[-1]
    assert np.isnan(typical) == np.isnan(long) == (runs.count[-1] == 0)
    assert runs.count[-1] == 0 or 0 < typical <= long
    assert np.isfinite(runs.starts).all()
    assert (runs.starts >= 0).all()
    assert not (runs.usage[np.isfinite(runs.usage)] < 0).any()
    first = int(start[0] // DAY) if n_runs else n_days
    seen = list(range(max(first, n_days - 28), n_days))
    per_day = np.bincount(start // DAY, minlength=n_days)[seen] if n_runs else np.zeros(1)
    assert runs.starts[-1].sum(axis=1).max() <= per_day.max() + 1e-9, "no more than on the busiest day"
    if runs.ended[-1]:
        assert not runs.starts[-1].any()
    else:
        kind = history.describe_days().day_type
        for day_type in {DayType(kind[d]) for d in seen}:
            of_type = np.array([d for d in seen if kind[d] == day_type])
            weight = 0.5 ** (np.array([(kind[day + 1 :] == day_type).sum() for day in of_type]) / 3)
            daily = np.bincount(start // DAY, minlength=n_days)[of_type]
            assert runs.starts[-1, day_type].sum() == pytest.approx(float((weight * daily).sum() / weight.sum()))
