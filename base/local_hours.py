"""Hours of the day and week as people write them.

01:00-05:00                          every day; the end is not part of it
22:00-04:00                          over midnight: the weekday is that of its beginning
sat,sun 00:00-24:00                  on these days
mon-fri 01:00-05:00; sat 01:00-08:00,12:00-14:00
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from base.errors import InputError

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_ALL: Final = frozenset(range(7))
_WHOLE_DAY: Final = 24 * 60
_MINUTE: Final = timedelta(minutes=1)
_LONGEST_TEXT: Final = 400
"""Characters. Any client that creates a pod can write more."""

_RANGE: Final = re.compile(r"([0-2][0-9]):([0-5][0-9])-([0-2][0-9]):([0-5][0-9])")
_EXAMPLES: Final = "write for instance '01:00-05:00' or 'sat,sun 22:00-06:00; mon-fri 01:00-04:00'"


@dataclass(frozen=True, slots=True)
class LocalRange:
    """Wall-clock minutes of the day, [begin, end); end <= begin: until that time of the next day.

    days : 0 = Monday; of its beginning
    """

    days: frozenset[int]
    begin: int
    end: int

    def contains(self, weekday: int, minute: int) -> bool:
        """Whether a wall-clock minute of a day is in it."""
        if self.begin < self.end:
            return weekday in self.days and self.begin <= minute < self.end
        return (weekday in self.days and minute >= self.begin) or ((weekday - 1) % 7 in self.days and minute < self.end)


@dataclass(frozen=True, slots=True)
class LocalHours:
    """All of some ranges, and the text that they were read from."""

    ranges: tuple[LocalRange, ...]
    text: str

    def contains(self, local: datetime) -> bool:
        """Whether a wall-clock time is in one of the ranges."""
        minute = local.hour * 60 + local.minute
        return any(one.contains(local.weekday(), minute) for one in self.ranges)

    def overlaps(self, begin: datetime, end: datetime, zone: ZoneInfo) -> bool:
        """Whether `begin`, or any whole minute up to and without `end`, is in one of the ranges. Both are aware."""
        return _overlaps(self, begin.astimezone(UTC), end.astimezone(UTC), zone)


@lru_cache(maxsize=4096)
def parse_hours(text: str) -> LocalHours:
    """Return the hours that a text means. Raises InputError with the way out."""
    if len(text) > _LONGEST_TEXT:
        raise InputError(f"the hours have {len(text)} characters, at most {_LONGEST_TEXT} are read: {_EXAMPLES}")
    entries = [entry for entry in re.sub(r"\s*,\s*", ",", text.strip().lower()).split(";") if entry.strip()]
    if not entries:
        raise InputError(f"no hours are given: {_EXAMPLES}")
    return LocalHours(tuple(one for entry in entries for one in _ranges(entry.split(), text)), text)


def checked_hours(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts of a setting. Raises ValueError where one cannot be read, as pydantic wants it."""
    for text in texts:
        try:
            parse_hours(text)
        except InputError as error:
            raise ValueError(str(error)) from error
    return texts


def _ranges(words: list[str], text: str) -> list[LocalRange]:
    if len(words) > 2:
        raise InputError(f"{' '.join(words)!r} in the hours {text!r} has {len(words)} parts: {_EXAMPLES}")
    days = _days(words[0], text) if len(words) == 2 else _ALL
    return [LocalRange(days, *_minutes(one, text)) for one in words[-1].split(",")]


def _minutes(one: str, text: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(one)
    if match is None:
        raise InputError(f"{one!r} in the hours {text!r} is no range of hours: {_EXAMPLES}")
    hour, minute, end_hour, end_minute = map(int, match.groups())
    begin, end = hour * 60 + minute, end_hour * 60 + end_minute
    if begin >= _WHOLE_DAY or end > _WHOLE_DAY:
        raise InputError(f"{one!r} in the hours {text!r} begins after 23:59 or ends after 24:00: {_EXAMPLES}")
    if begin == end:
        raise InputError(f"{one!r} in the hours {text!r} is empty: write 00:00-24:00 for the whole day")
    return begin, end


def _days(word: str, text: str) -> frozenset[int]:
    days: set[int] = set()
    for one in word.split(","):
        first, dash, last = one.partition("-")
        if first not in _DAYS or (dash and last not in _DAYS):
            raise InputError(f"{one!r} in the hours {text!r} is no weekday: write {', '.join(_DAYS)} or mon-fri")
        begin, end = _DAYS.index(first), _DAYS.index(last if dash else first)
        days.update((begin + n) % 7 for n in range((end - begin) % 7 + 1))
    return frozenset(days)


@lru_cache(maxsize=4096)  # pods of one service say the same
def _overlaps(hours: LocalHours, begin: datetime, end: datetime, zone: ZoneInfo) -> bool:
    at = begin
    while at < end or at == begin:
        if hours.contains(at.astimezone(zone)):
            return True
        at = at.replace(second=0, microsecond=0) + _MINUTE
    return False


@dataclass(frozen=True, slots=True)
class ChangeWindows:
    """The setting `change_windows`: times in which running pods may be changed. Without hours: always.

    zone : None = the caller's
    """

    hours: tuple[LocalHours, ...] = ()
    zone: ZoneInfo | None = None

    @classmethod
    def of(cls, texts: Iterable[str], zone: ZoneInfo | None = None) -> ChangeWindows:
        """Return the windows of the settings. Raises InputError where a text cannot be read."""
        return cls(tuple(map(parse_hours, texts)), zone)

    def closed(self, at: datetime, zone: ZoneInfo) -> str:
        """Return why running pods may not be changed at an aware moment; '' = they may.

        zone : of the model, in which hours are read where the settings name no time zone
        """
        local = at.astimezone(self.zone or zone)
        is_open = not self.hours or any(one.contains(local) for one in self.hours)
        return "" if is_open else f"it is outside of {self}"

    def covers(self, begin: datetime, end: datetime, zone: ZoneInfo) -> bool:
        """Return whether all minutes from `begin` up to and without `end` are in the windows. Both are aware."""
        return self.open_until(begin, end, zone) == end

    def open_until(self, begin: datetime, end: datetime, zone: ZoneInfo) -> datetime:
        """Return the first minute from `begin` on in which they are closed, `end` if there is none before it."""
        at = begin.astimezone(UTC)
        while at < end:
            if self.closed(at, zone):
                return max(at, begin)
            at = at.replace(second=0, microsecond=0) + _MINUTE
        return end

    def __str__(self) -> str:
        return f"change_windows ({', '.join(one.text for one in self.hours)})"
