"""Wall-clock time: slots, days of 23 and 25 hours, day types."""

from __future__ import annotations

from datetime import date

import pytest

from base.errors import InputError
from forecast.calendar import Calendar, DayType


def test_midnight_and_its_slot_agree() -> None:
    kolkata = Calendar("Asia/Kolkata")
    assert kolkata.day_and_slot(kolkata.midnight(date(2026, 5, 1))) == (date(2026, 5, 1), 0)
    assert kolkata.day_and_slot(kolkata.at(date(2026, 5, 1), 4)) == (date(2026, 5, 1), 8)


def test_holidays_count_on_any_weekday_and_only_in_their_country() -> None:
    days = (date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3), date(2026, 1, 4))
    german = Calendar("Europe/Berlin", "DE").describe(days).day_type.tolist()
    assert german == [DayType.HOLIDAY, DayType.WORKDAY, DayType.SATURDAY, DayType.SUNDAY]
    assert Calendar("Europe/Berlin").describe(days).day_type[0] == DayType.WORKDAY


def test_a_day_is_a_holiday_if_it_is_one_in_any_country() -> None:
    both = Calendar(holiday_country="DE, US")
    days = (date(2026, 5, 1), date(2026, 5, 14), date(2026, 7, 3), date(2026, 12, 25), date(2026, 5, 4))
    assert both.countries == ("DE", "US")
    expected = [[True, True, False, True, False], [False, False, True, True, False]]
    assert both.holidays(days).tolist() == expected
    assert (both.describe(days).day_type == DayType.HOLIDAY).tolist() == [True, True, True, True, False]
    with pytest.raises(InputError, match="'XX' is not known"):
        Calendar(holiday_country="DE,XX")


def test_a_subdivision_has_its_own_holidays() -> None:
    epiphany = (date(2026, 1, 6),)
    assert Calendar("Europe/Berlin", "DE-BY").describe(epiphany).day_type[0] == DayType.HOLIDAY
    assert Calendar("Europe/Berlin", "DE").describe(epiphany).day_type[0] == DayType.WORKDAY


@pytest.mark.parametrize(("zone", "country"), [("Mars/Olympus", None), ("", None), ("UTC", "XX")])
def test_unknown_zones_and_countries_are_refused_with_the_way_out(zone: str, country: str | None) -> None:
    with pytest.raises(InputError, match="write"):
        Calendar(zone, country)
