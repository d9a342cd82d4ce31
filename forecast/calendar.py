"""Which local day and half hour an instant falls in, and what kind of day it is.

Profiles live on wall-clock time: people come home at 20:00 summer and winter. A *slot* is a local half hour,
a *day* a local calendar day of always 48 slots. On the day clocks go forward two slots hold no instant (NaN);
on the day they go back two slots hold two instants each and their samples are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from base.arrays import Bools, Ints
from base.errors import InputError

if TYPE_CHECKING:  # pandas takes 80 MB, which services that only ask for slots need not have
    import holidays
    import pandas as pd

SLOT_MINUTES = 30
SLOTS_PER_DAY = 24 * 60 // SLOT_MINUTES


class DayType(IntEnum):
    """The kinds of day that get a profile of their own."""

    WORKDAY = 0
    SATURDAY = 1
    SUNDAY = 2
    HOLIDAY = 3


@dataclass(frozen=True, slots=True)
class Days:
    """What the predictors know about a run of consecutive days.

    weekday  : (n_days,) 0 = Monday .. 6 = Sunday
    day_type : (n_days,) DayType values
    """

    weekday: Ints
    day_type: Ints

    def __len__(self) -> int:
        return len(self.weekday)

    def take(self, index: slice | Ints) -> Days:
        """The days at `index`, in that order."""
        return Days(self.weekday[index], self.day_type[index])


@dataclass(frozen=True, slots=True)
class Calendar:
    """A time zone (IANA name) and the country whose public holidays count (ISO code, optionally "DE-BY").

    There may be several countries, as "DE,US": a day is a holiday if it is one in any of them.
    """

    time_zone: str = "UTC"
    holiday_country: str | None = None

    def __post_init__(self) -> None:
        try:
            ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise InputError(
                f"time_zone {self.time_zone!r} is not an IANA time zone: write for instance 'Europe/Berlin' or 'UTC'"
            ) from error
        for country in self.countries:
            _holiday_calendar(country)

    @property
    def countries(self) -> tuple[str, ...]:
        """The countries whose holidays count, each once."""
        named = () if self.holiday_country is None else self.holiday_country.split(",")
        return tuple(dict.fromkeys(country.strip() for country in named))

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)

    def local_days_and_slots(self, timestamps: pd.DatetimeIndex) -> tuple[Ints, Ints]:
        """Local day (proleptic ordinal of `date`) and slot of the day (0..47) of UTC instants, both (n,)."""
        slots = self.local_seconds(timestamps) // (SLOT_MINUTES * 60)
        epoch = date(1970, 1, 1).toordinal()
        return (slots // SLOTS_PER_DAY + epoch).astype(np.int64), (slots % SLOTS_PER_DAY).astype(np.int64)

    def local_seconds(self, timestamps: pd.DatetimeIndex) -> Ints:
        """Wall-clock time of UTC instants, as whole seconds since the local midnight of 1970-01-01: (n,)."""
        wall = timestamps.tz_convert(self.zone).tz_localize(None)
        return np.asarray(wall.as_unit("ns").asi8 // 1_000_000_000, dtype=np.int64)

    def midnight(self, day: date) -> datetime:
        """The instant a local day begins, in UTC."""
        return self.at(day, 0)

    def at(self, day: date, hour: int) -> datetime:
        """The instant of a wall-clock hour, in UTC."""
        return datetime.combine(day, time(hour), tzinfo=self.zone).astimezone(ZoneInfo("UTC"))

    def day_and_slot(self, moment: datetime) -> tuple[date, int]:
        """Local day and slot of one instant; a naive datetime is taken as local wall-clock time."""
        local = moment.astimezone(self.zone) if moment.tzinfo else moment
        return local.date(), (local.hour * 60 + local.minute) // SLOT_MINUTES

    def describe(self, days: Sequence[date]) -> Days:
        """Weekday and day type of local days. A public holiday on any weekday is a HOLIDAY."""
        return _described(self, tuple(days))

    def holidays(self, days: Sequence[date]) -> Bools:
        """Which days are public holidays, by country: (n_countries, n_days)."""
        festive: Bools = np.zeros((len(self.countries), len(days)), dtype=np.bool_)
        for row, country in enumerate(self.countries):
            calendar = _holiday_calendar(country)
            festive[row] = [day in calendar for day in days]
        return festive

    def horizon(self, first: date, n_days: int) -> tuple[date, ...]:
        """n_days consecutive local days from `first`."""
        return tuple(first + timedelta(days=i) for i in range(n_days))


@lru_cache(maxsize=64)
def _described(calendar: Calendar, days: tuple[date, ...]) -> Days:
    # Services ask about the days of one horizon for each node: 40 us each time.
    weekday = np.array([day.weekday() for day in days], dtype=np.int64)
    day_type = np.where(weekday == 5, DayType.SATURDAY, np.where(weekday == 6, DayType.SUNDAY, DayType.WORKDAY))
    day_type = day_type.astype(np.int64)
    day_type[calendar.holidays(days).any(axis=0)] = DayType.HOLIDAY
    weekday.flags.writeable = day_type.flags.writeable = False  # all who ask get the same
    return Days(weekday, day_type)


@lru_cache(maxsize=16)
def _holiday_calendar(country: str) -> holidays.HolidayBase:
    import holidays

    code, _, subdivision = country.partition("-")
    try:
        return holidays.country_holidays(code, subdiv=subdivision or None)
    except NotImplementedError as error:
        raise InputError(
            f"holiday_country {country!r} is not known to the holidays library: write an ISO 3166 code such as 'DE', "
            "'US' or 'DE-BY', several as 'DE,US', or leave it out"
        ) from error
