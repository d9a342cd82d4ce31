"""When a CronJob starts Jobs: its schedule in its time zone.

Semantics are those of Kubernetes' CronJob controller, which are ParseStandard of robfig/cron v3: five fields, or
@hourly and the like, or @every and a duration. Where both days are restricted either will do. Hours that are skipped in
spring are left out, hours that come twice in autumn count twice.

    parse --> CronExpression --times_between--> unix seconds

Minutes of a stretch of time with one offset are compared all at once; only around a change of the offset is it walked
from one time to the next as robfig does (spec.go).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, tzinfo
from functools import lru_cache
from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from base.errors import InputError
from profiles.job.cron.schedule_fields import (
    DAY,
    DAY_SECONDS,
    HOUR,
    MINUTE,
    MONTH,
    WEEKDAY,
    FieldValues,
    Matcher,
    changes_of_offset,
    local_date,
    next_time,
    offset,
    zone_named,
)

_HOUR: Final = 3600
_LONGEST: Final = 256
_SPACE: Final = re.compile(r"[\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_DURATION: Final = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_PART: Final = re.compile(r"([0-9.]+)(ns|us|µs|μs|ms|s|m|h)")
_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST_DURATION: Final = 9.2e9
"""Go's: 292 years."""

_DESCRIBED: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True, slots=True)
class CronExpression:
    """zone: the schedule's; every: seconds, of "@every", where nothing else counts; None = the fields say when."""

    minutes: FieldValues
    hours: FieldValues
    days: FieldValues
    months: FieldValues
    weekdays: FieldValues
    zone: tzinfo = UTC
    every: int | None = None

    @classmethod
    def parse(cls, schedule: str, time_zone: str = "") -> CronExpression:
        """time_zone: '' = UTC. Raises InputError: so do all schedules that the API server refuses."""
        return _parsed(schedule[: _LONGEST + 1], time_zone[:256])

    def times_between(self, after: float, until: float, *, anchor: float = 0.0) -> Floats:
        """(n_times,) unix seconds, ascending: all t with after < t <= until.

        anchor : what "@every" counts from: the last start of the CronJob, or its creation
        """
        begin, end = int(after // 1), int(until // 1)
        if self.every is not None:
            origin = int(anchor // 1)
            first = max(1, (begin - origin) // self.every + 1)
            last = (end - origin) // self.every
            return origin + self.every * np.arange(first, last + 1, dtype=np.float64)
        parts: list[Ints] = []
        for change in changes_of_offset(self.zone, begin - _HOUR, end):
            if begin >= change + _HOUR:
                continue  # passed already
            if begin < change - 1:
                parts.append(self._of_one_offset(begin, change - 1))
                begin = int(parts[-1][-1]) if len(parts[-1]) else begin
            # An hour that was begun before the change and is cut off after it leads to other times than it should.
            walked = self._walked(begin, end, beyond=change + _HOUR)
            parts.append(walked[walked <= end])
            begin = int(walked[-1]) if len(walked) else end
        parts.append(self._of_one_offset(begin, end))
        return np.concatenate(parts).astype(np.float64)

    def next_after(self, at: int) -> int | None:
        """The next time; None = there is none within five years, or it is "@every", which needs an anchor."""
        return None if self.every is not None else next_time(self._matcher, self.zone, at)

    # Inside

    @property
    def _matcher(self) -> Matcher:
        return Matcher(
            self.minutes.values,
            self.hours.values,
            self.days.values,
            self.months.values,
            self.weekdays.values,
            is_either_day=not (self.days.is_star or self.weekdays.is_star),
        )

    def _of_one_offset(self, after: int, until: int) -> Ints:
        """As times_between, where the offset does not change."""
        first, last = after // 60 + 1, until // 60
        if last < first:
            return np.zeros(0, dtype=np.int64)
        shift = offset(self.zone, after)
        if shift % 60:  # before there were time zones
            walked = self._walked(after, until)
            return walked[walked <= until]
        minute, hour, day, month, weekday = _calendar(first, last, shift // 60)
        day_matches = _is_one_of(self.days, day, 32)
        weekday_matches = _is_one_of(self.weekdays, weekday, 7)
        if self.days.is_star or self.weekdays.is_star:
            day_matches &= weekday_matches
        else:
            day_matches |= weekday_matches
        matches = (
            day_matches
            & _is_one_of(self.months, month, 13)
            & _is_one_of(self.hours, hour, 24)
            & _is_one_of(self.minutes, minute, 60)
        )
        return np.asarray(60 * (first + np.flatnonzero(matches)), dtype=np.int64)

    def _walked(self, after: int, until: int, *, beyond: float = math.inf) -> Ints:
        """Up to the first that is later than `until`, or not earlier than `beyond`."""
        found: list[int] = []
        at: int | None = after
        while at is not None and at <= until and at < beyond:
            at = self.next_after(at)
            if at is not None:
                found.append(at)
        return np.array(found, dtype=np.int64)


@lru_cache(maxsize=8192)
def _parsed(schedule: str, time_zone: str) -> CronExpression:
    zone = zone_named(time_zone)
    if len(schedule) > _LONGEST or "TZ" in schedule:
        raise InputError(
            f"schedule {schedule[:40]!r} is too long, or names a time zone: the zone of a CronJob is in spec.timeZone"
        )
    if schedule.startswith("@every "):
        return _every(schedule.removeprefix("@every "), zone)
    fields = [one for one in _SPACE.split(_DESCRIBED.get(schedule, schedule)) if one]
    if len(fields) != 5 or (schedule.startswith("@") and schedule not in _DESCRIBED):
        raise InputError(
            f"schedule {schedule[:40]!r} is none: write minute, hour, day, month and weekday, such as 0 3 * * 1-5, "
            f"or one of {', '.join(_DESCRIBED)}, @every 90m"
        )
    minute, hour, day, month, weekday = fields
    return CronExpression(
        MINUTE.values(minute), HOUR.values(hour), DAY.values(day), MONTH.values(month), WEEKDAY.values(weekday), zone
    )


def _every(duration: str, zone: tzinfo) -> CronExpression:
    if not _DURATION.fullmatch(duration):
        raise InputError(f"{duration[:40]!r} is no duration: write @every and one such as 1h30m")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(duration))
    if seconds > _LONGEST_DURATION:
        raise InputError(f"{duration[:40]!r} is longer than 292 years: write @every and a duration such as 1h30m")
    every = 1 if duration.startswith("-") else max(1, int(seconds + 1e-9))
    return CronExpression(MINUTE.every, HOUR.every, DAY.every, MONTH.every, WEEKDAY.every, zone, every)


@lru_cache(maxsize=64)
def _calendar(first: int, last: int, shift: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """(n_minutes,) minute, hour, day, month, weekday (0 = Sunday) of minutes since the epoch, shifted by minutes."""
    local = np.arange(first + shift, last + shift + 1, dtype=np.int64)
    days, of_day = np.divmod(local, DAY_SECONDS // 60)
    known, which = np.unique(days, return_inverse=True)
    dates: list[date] = [local_date(int(day) * DAY_SECONDS) for day in known]
    day = np.array([one.day for one in dates], dtype=np.int64)[which]
    month = np.array([one.month for one in dates], dtype=np.int64)[which]
    return of_day % 60, of_day // 60, day, month, (days + 4) % 7


def _is_one_of(field: FieldValues, values: Ints, n: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    table = np.zeros(n, dtype=bool)
    table[list(field.values)] = True
    return np.asarray(table[values])
