"""Holidays stay out of ordinary profiles and are forecast from earlier ones."""

from __future__ import annotations

import numpy as np
import pytest

from forecast.calendar import Days, DayType
from forecast.holiday_effect import as_ordinary, holiday_curves, without_holidays

WEEKDAY = np.arange(28) % 7
ORDINARY = Days(WEEKDAY, np.select([WEEKDAY == 5, WEEKDAY == 6], [1, 2], 0))
WITH_HOLIDAY = Days(WEEKDAY, np.where(np.arange(28) == 9, DayType.HOLIDAY, ORDINARY.day_type))


def test_predictors_see_the_weekday_and_not_the_holiday() -> None:
    np.testing.assert_array_equal(as_ordinary(WITH_HOLIDAY).day_type, ORDINARY.day_type)
    usage = np.ones((2, 28, 48))
    hidden = without_holidays(usage, WITH_HOLIDAY)
    assert np.isnan(hidden[:, 9]).all() and np.isfinite(np.delete(hidden, 9, axis=1)).all()
    assert np.isfinite(usage).all()


def test_a_first_holiday_is_taken_for_a_sunday() -> None:
    ordinary, sunday = np.full((3, 2, 48), 4.0), np.full((3, 48), 1.0)
    assert (holiday_curves(np.ones((3, 28, 48)), ORDINARY, ordinary, sunday) == 1.0).all()


def test_a_holiday_like_the_last_one_is_forecast_like_the_last_one_at_todays_level() -> None:
    usage = np.full((3, 28, 48), 4.0)
    usage[:, 9] = 2.0
    ordinary, sunday = np.full((3, 1, 48), 8.0), np.full((3, 48), 4.0)
    np.testing.assert_allclose(holiday_curves(usage, WITH_HOLIDAY, ordinary, sunday), 4.0)


def test_a_holiday_on_which_nothing_changed_is_an_ordinary_day() -> None:
    usage = np.full((3, 28, 48), 4.0)
    ordinary, sunday = np.full((3, 1, 48), 4.0), np.full((3, 48), 1.0)
    np.testing.assert_allclose(holiday_curves(usage, WITH_HOLIDAY, ordinary, sunday), 4.0)


def test_a_service_that_did_not_exist_on_the_holiday_follows_the_cluster() -> None:
    usage = np.full((3, 28, 48), 4.0)
    usage[:, 9] = 1.0
    usage[2, :14] = np.nan
    ordinary, sunday = np.full((3, 1, 48), 4.0), np.full((3, 48), 1.0)
    assert holiday_curves(usage, WITH_HOLIDAY, ordinary, sunday)[2].mean() == pytest.approx(1.0)


def test_quiet_weekends_do_not_raise_a_holiday() -> None:
    usage = np.where(WITH_HOLIDAY.day_type[:, None] == DayType.WORKDAY, 4.0, 2.0) * np.ones((2, 28, 48))
    ordinary, sunday = np.full((2, 1, 48), 4.0), np.full((2, 48), 2.0)
    np.testing.assert_allclose(holiday_curves(usage, WITH_HOLIDAY, ordinary, sunday), 2.0)
