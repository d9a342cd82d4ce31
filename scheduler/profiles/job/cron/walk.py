"""The next time of a schedule, field by field: SpecSchedule.Next of robfig/cron v3 (spec.go), with all it does where
the clock is set: an hour may last half an hour, and a day may begin at one o'clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta, tzinfo

from scheduler.profiles.job.cron.local_time import DAY_SECONDS, local_date, offset, unix

_YEARS = 5


@dataclass(frozen=True, slots=True)
class Matcher:
    """Values that match. is_either_day: day of the month or day of the week will do; else both have to match."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_either_day: bool

    def has_day(self, day: date) -> bool:
        """Whether it is one."""
        is_day, is_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return is_day or is_weekday if self.is_either_day else is_day and is_weekday

    @property
    def can_match(self) -> bool:
        """Whether there is any value for each field."""
        has_days = bool(self.days or self.weekdays) if self.is_either_day else bool(self.days and self.weekdays)
        return bool(self.minutes and self.hours and self.months and has_days)


def next_time(matcher: Matcher, zone: tzinfo, at: int) -> int | None:
    """The first that is later than `at`, in unix seconds; None = there is none within five years."""
    if not matcher.can_match:
        return None
    walk = _Walk(matcher, zone, at + 1)
    last_year = walk.day.year + _YEARS
    while walk.day.year <= last_year:
        if walk.to_month() and walk.to_day() and walk.to_hour() and walk.to_minute() and walk.to_second():
            return walk.at
    return None


class _Walk:
    """Every step returns False where it came to the beginning of what the field before counts: that is looked at
    again. `is_cut`: it is at the beginning of an hour, day or month, no more at the time it set out from."""

    def __init__(self, matcher: Matcher, zone: tzinfo, at: int) -> None:
        self._matcher, self._zone = matcher, zone
        self.at, self._is_cut = at, False

    @property
    def _local(self) -> int:
        return self.at + offset(self._zone, self.at)

    @property
    def day(self) -> date:
        return local_date(self._local)

    @property
    def _hour(self) -> int:
        return self._local % DAY_SECONDS // 3600

    def to_month(self) -> bool:
        while (day := self.day).month not in self._matcher.months:
            if not self._is_cut:
                self._is_cut = True
                self.at = unix(self._zone, day.replace(day=1), 0)
                day = self.day
            # AddDate keeps the time of day, whatever the clock was set to.
            self.at = unix(self._zone, _month_later(day), self._local % DAY_SECONDS)
            if self.day.month == 1:
                return False
        return True

    def to_day(self) -> bool:
        while not self._matcher.has_day(day := self.day):
            if not self._is_cut:
                self._is_cut = True
                self.at = unix(self._zone, day, 0)
            then = unix(self._zone, self.day + timedelta(days=1), self._local % DAY_SECONDS)
            # Samoa left out a whole day in 2011; upstream never comes to the next one.
            self.at = then if then > self.at else self.at + DAY_SECONDS
            hour = self._hour
            if hour:  # there was no midnight
                self.at += 3600 * (24 - hour if hour > 12 else -hour)
            if self.day.day == 1:
                return False
        return True

    def to_hour(self) -> bool:
        while self._hour not in self._matcher.hours:
            if not self._is_cut:
                self._is_cut = True
                local = self._local
                self.at = unix(self._zone, local_date(local), local % DAY_SECONDS // 3600 * 3600)
            self.at += 3600
            if self._hour == 0:
                return False
        return True

    def to_minute(self) -> bool:
        while self._local % 3600 // 60 not in self._matcher.minutes:
            if not self._is_cut:
                self._is_cut = True
                self.at -= self.at % 60
            self.at += 60
            if self._local % 3600 // 60 == 0:
                return False
        return True

    def to_second(self) -> bool:
        while self._local % 60:
            self._is_cut = True
            self.at += 1
            if self._local % 60 == 0:
                return False
        return True


def _month_later(day: date) -> date:
    """As Go does it: the 31st of a month of thirty days is the first of the next."""
    first = date(day.year + day.month // 12, day.month % 12 + 1, 1)
    return first + timedelta(days=day.day - 1)
