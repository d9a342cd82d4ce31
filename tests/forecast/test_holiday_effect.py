"""Holidays stay out of ordinary profiles and are forecast from earlier ones."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest

from forecast.calendar import Calendar, Days, DayType
from forecast.holiday_effect import as_ordinary, curves_by_country, holiday_curves, without_holidays

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


MAY = tuple(date(2026, 4, 13) + timedelta(days=i) for i in range(28))
TWO = Calendar(holiday_country="DE,GB")


def of_two_countries(german: float, british: float) -> np.ndarray:
    """Curve expected on Ascension Day (DE) and on Whit Monday (DE) / Spring bank holiday (GB): (3 services, 2, 48).

    On earlier holidays of its country, service 0 (of Germany) and 1 (of Great Britain) have these loads; 2 is new.
    """
    usage = np.where(TWO.describe(MAY).day_type[:, None] == DayType.SUNDAY, 1.0, 4.0) * np.ones((3, 28, 48))
    festive = TWO.holidays(MAY)
    usage[0, festive[0]], usage[1, festive[1]] = german, british
    usage[2] = np.nan
    coming = TWO.holidays((date(2026, 5, 14), date(2026, 5, 25)))
    assert coming.tolist() == [[True, True], [False, True]]
    workday, sunday = np.full((3, 48), 4.0), np.full((3, 48), 1.0)
    return curves_by_country(usage, TWO.describe(MAY), festive, coming, workday, sunday)


def test_a_service_follows_the_holidays_of_its_own_country() -> None:
    curves = of_two_countries(1.0, 1.0)
    assert curves[0, 0] == pytest.approx(1.0)
    assert curves[1, 0] == pytest.approx(4.0)


def test_a_holiday_of_both_countries_is_learned_from_those_of_either() -> None:
    # One day that it followed, one that it did not: two of its own count 2/3, its group's mean share is the rest.
    curves = of_two_countries(1.0, 1.0)[:2, 1]
    assert ((curves > 1.0) & (curves < 4.0)).all()


def test_a_new_service_gets_the_share_that_all_others_had() -> None:
    assert of_two_countries(1.0, 1.0)[2, 0] == pytest.approx(2.5)


def test_a_service_that_is_busier_on_holidays_is_not_taken_for_one_that_rests() -> None:
    assert of_two_countries(8.0, 1.0)[0, 0] == pytest.approx(6.0)


def test_a_first_holiday_of_one_country_in_two_is_half_a_sunday() -> None:
    days = TWO.describe(MAY[:7])
    usage, workday, sunday = np.full((1, 7, 48), 4.0), np.full((1, 48), 4.0), np.full((1, 48), 1.0)
    coming = np.array([[True, True], [False, True]])
    curves = curves_by_country(usage, days, np.zeros((2, 7), dtype=bool), coming, workday, sunday)
    assert curves[0, :, 0].tolist() == [2.5, 1.0]
