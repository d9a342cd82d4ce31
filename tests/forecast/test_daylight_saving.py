"""Days on which clocks change: every instant falls into the half hour that clocks on the wall show."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pandas as pd
import pytest

from forecast.calendar import SLOTS_PER_DAY, Calendar

# Zone, day, hours that day has, slots without an instant, slots with two.
CHANGES = [
    ("Europe/Berlin", date(2026, 3, 29), 23, {4, 5}, set()),
    ("Europe/Berlin", date(2026, 10, 25), 25, set(), {4, 5}),
    ("America/New_York", date(2026, 3, 8), 23, {4, 5}, set()),
    ("America/New_York", date(2026, 11, 1), 25, set(), {2, 3}),
    ("America/Santiago", date(2026, 9, 6), 23, {0, 1}, set()),  # there is no midnight
    ("Africa/Cairo", date(2026, 10, 29), 25, set(), {46, 47}),  # midnight comes after an hour that is there twice
    ("Australia/Lord_Howe", date(2026, 10, 4), 23.5, {4}, set()),  # by half an hour
    ("Asia/Kathmandu", date(2026, 3, 29), 24, set(), set()),
]


@pytest.mark.parametrize(("zone", "day", "hours", "empty", "twice"), CHANGES)
def test_a_day_on_which_clocks_change(zone: str, day: date, hours: float, empty: set[int], twice: set[int]) -> None:
    calendar = Calendar(zone)
    begin, end = calendar.midnight(day), calendar.midnight(day + timedelta(days=1))
    assert end - begin == timedelta(hours=hours)
    instants = [begin + timedelta(minutes=15) * n for n in range(int(hours * 4))]
    found = [calendar.day_and_slot(instant) for instant in instants]
    assert {on for on, _ in found} == {day}
    assert calendar.day_and_slot(begin - timedelta(minutes=1))[0] == day - timedelta(days=1)
    counts = {slot: [s for _, s in found].count(slot) for slot in range(SLOTS_PER_DAY)}
    assert {slot for slot, n in counts.items() if n == 0} == empty
    assert {slot for slot, n in counts.items() if n == 4} == twice
    for instant, (_, slot) in zip(instants, found, strict=True):
        wall = instant.astimezone(ZoneInfo(zone))
        assert slot == wall.hour * 2 + wall.minute // 30
    days, slots = calendar.local_days_and_slots(pd.DatetimeIndex(instants))
    assert list(zip(map(date.fromordinal, days.tolist()), slots.tolist(), strict=True)) == found


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_a_naive_time_that_is_there_twice_or_never_is_one_slot(zone: str) -> None:
    calendar = Calendar(zone)
    for day in (date(2026, 3, 29), date(2026, 10, 25), date(2026, 3, 8), date(2026, 11, 1)):
        assert calendar.day_and_slot(datetime(day.year, day.month, day.day, 2, 30)) == (day, 5)
