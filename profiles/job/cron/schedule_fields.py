"""The five fields of a schedule, and the next time that fits them, as robfig/cron v3 (parser.go, spec.go) has it, which
Kubernetes uses.

    field  = part *("," part)
    part   = ("*" | "?" | value ["-" value]) ["/" step]         "N/step" runs to the end of the field

Written here since the libraries differ: cronsim and croniter take Sunday for 7 as well, know L, # and W, refuse "?" in
some fields, and either run jobs of a skipped hour later or one of a repeated hour once (Debian's rules), where robfig
leaves them out or runs them twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from base.errors import InputError

DAY_SECONDS = 86_400
_EPOCH = date(1970, 1, 1).toordinal()
_HOUR = 3600

_YEARS = 5


@lru_cache(maxsize=1024)
def zone_named(name: str) -> tzinfo:
    """By its name in the tz database; '' = UTC. Raises InputError."""
    if name in ("", "UTC"):
        return UTC
    try:
        if len(name) > 128 or name == "localtime":
            raise ValueError(name)
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InputError(f"there is no time zone {name[:64]!r}: write one such as Europe/Berlin") from None


def offset(zone: tzinfo, at: int) -> int:
    """Seconds east of UTC at a moment."""
    found = datetime.fromtimestamp(at, zone).utcoffset()
    return 0 if found is None else found // timedelta(seconds=1)


def local_date(local: int) -> date:
    """The day of a local time."""
    return date.fromordinal(local // DAY_SECONDS + _EPOCH)


def unix(zone: tzinfo, day: date, seconds: int) -> int:
    """The moment of a local time, seconds into a day; of one that there is not, or twice, the one that Go takes
    (time.Date: the offset that holds at the time a first guess leads to)."""
    local = (day.toordinal() - _EPOCH) * DAY_SECONDS + seconds
    return local - offset(zone, local - offset(zone, local))


@lru_cache(maxsize=4096)
def changes_of_offset(zone: tzinfo, after: int, until: int) -> tuple[int, ...]:
    """First moments of new offsets in (after, until]. Two within an hour that cancel each other out are not seen."""
    found = []
    at, known = after, offset(zone, after)
    while at < until:
        then = min(at + _HOUR, until)
        if (new := offset(zone, then)) != known:
            low, high = at, then
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(zone, middle) == known else (low, middle)
            found.append(high)
            known = new
        at = then
    return tuple(found)


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


# The five fields of a schedule, as robfig/cron v3 (parser.go) reads them, which Kubernetes uses.
#
#     field  = part *("," part)
#     part   = ("*" | "?" | value ["-" value]) ["/" step]         "N/step" runs to the end of the field
#
# Written here since the libraries differ: cronsim and croniter take Sunday for 7 as well, know L, # and W, refuse "?"
# in some fields, and either run jobs of a skipped hour later or one of a repeated hour once (Debian's rules), where
# robfig leaves them out or runs them twice.


@dataclass(frozen=True, slots=True)
class FieldValues:
    """values: that match; is_star: it says "*" or "?" without a step."""

    values: frozenset[int]
    is_star: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """name, lowest and highest value, names of values."""

    name: str
    lowest: int
    highest: int
    names: Mapping[str, int] = field(default_factory=dict)

    @property
    def every(self) -> FieldValues:
        return FieldValues(frozenset(range(self.lowest, self.highest + 1)), is_star=True)

    def values(self, text: str) -> FieldValues:
        """What a text means; parts that are empty mean nothing. Raises InputError."""
        values: frozenset[int] = frozenset()
        is_star = False
        for part in text.split(","):
            if part:
                some = self._part(part)
                values, is_star = values | some.values, is_star or some.is_star
        return FieldValues(values, is_star)

    def _part(self, text: str) -> FieldValues:
        span, *steps = text.split("/")
        low, *high = span.split("-")
        if len(steps) > 1 or (low not in _STARS and len(high) > 1):
            raise self._mistake(text)
        if low in _STARS:
            first, last = self.lowest, self.highest
        else:
            first = self._value(low, text)
            last = self._value(high[0], text) if high else first
        step = 1
        if steps:
            step = self._number(steps[0], text)
            if not high:
                last = self.highest
        if not self.lowest <= first <= last <= self.highest or step == 0:
            raise self._mistake(text)
        return FieldValues(frozenset(range(first, last + 1, step)), low in _STARS and step == 1)

    def _value(self, text: str, part: str) -> int:
        named = self.names.get(text.lower())
        return self._number(text, part) if named is None else named

    def _number(self, text: str, part: str) -> int:
        if not _NUMBER.fullmatch(text):
            raise self._mistake(part)
        return int(text)

    def _mistake(self, part: str) -> InputError:
        return InputError(
            f"the {self.name} of a schedule has {part[:40]!r}: write values from {self.lowest} to {self.highest}, "
            "such as 5, 1-5, */15 or *"
        )


_STARS: Final = ("*", "?")

_NUMBER: Final = re.compile(r"\+?0*[0-9]{1,18}", re.ASCII)
"""As Go's Atoi reads it, but for numbers that no field has anyway."""

_MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
MINUTE: Final = Field("minute", 0, 59)
HOUR: Final = Field("hour", 0, 23)
DAY: Final = Field("day of the month", 1, 31)
MONTH: Final = Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)})
WEEKDAY: Final = Field("day of the week", 0, 6, {name: number for number, name in enumerate(_WEEKDAYS)})
