"""When a CronJob starts Jobs: its schedule in its time zone.

Semantics are those of Kubernetes' CronJob controller, which are ParseStandard of robfig/cron v3: five fields, or
@hourly and the like, or @every and a duration. Where both days are restricted either will do. cronsim finds the times
on the clock on the wall; it treats changes of the clock as Debian does, so here it sees no zone. A time that is skipped
in spring is left out, one that comes twice in autumn counts twice.

Two mistakes of robfig/cron are not repeated: it passes over a day that has no midnight (Beirut, once a year), and over
half an hour after a change of half an hour (Lord Howe).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import takewhile
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
from cronsim import CronSim, CronSimError
from cronsim.cronsim import Field

from base.arrays import Floats
from base.errors import InputError

_LONGEST: Final = 256
_REPEATED: Final = timedelta(hours=3)
"""Before a moment on the clock on the wall: what comes twice can come again within this time after the moment."""

_DURATION: Final = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
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
_FIELDS: Final = (
    (Field.MINUTE, "minute", 0, 59),
    (Field.HOUR, "hour", 0, 23),
    (Field.DAY, "day of the month", 1, 31),
    (Field.MONTH, "month", 1, 12),
    (Field.DOW, "day of the week", 0, 6),
)
"""With the lowest and the highest value that robfig/cron takes."""

_PART: Final = re.compile(r"(?:[*?]|[0-9]+|[a-z]{3})(?:-(?:[0-9]+|[a-z]{3}))?(?:/[0-9]+)?", re.ASCII | re.IGNORECASE)


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


@dataclass(frozen=True, slots=True)
class CronExpression:
    """fields: as cronsim reads them; every: seconds, of "@every", where nothing else counts; None = see the fields."""

    fields: str
    zone: tzinfo = UTC
    every: int | None = None

    @classmethod
    def parse(cls, schedule: str, time_zone: str = "") -> CronExpression:
        """time_zone: '' = UTC. Raises InputError: so do all schedules that the API server refuses."""
        return _parsed(schedule[: _LONGEST + 1], time_zone[:256])

    def times_between(self, after: float, until: float, *, anchor: float = 0.0) -> Floats:
        """(n_times,) unix seconds, ascending: all t with after < t <= until. Not to be changed in place.

        anchor : what "@every" counts from: the last start of the CronJob, or its creation
        """
        begin, end = int(after // 1), int(until // 1)
        if self.every is not None:
            origin = int(anchor // 1)
            first = max(1, (begin - origin) // self.every + 1)
            last = (end - origin) // self.every
            return origin + self.every * np.arange(first, last + 1, dtype=np.float64)
        return _times_between(self, begin, end)

    def next_after(self, at: int) -> int | None:
        """The next time; None = it never comes, or it is "@every", which needs an anchor."""
        return None if self.every is not None else next(self._times(at), None)

    def _times(self, after: int) -> Iterator[int]:
        """Times later than a moment, without end."""
        again: list[int] = []  # of an hour that comes twice, the second time
        wall = datetime.fromtimestamp(after, self.zone).replace(tzinfo=None)
        for local in CronSim(self.fields, wall - _REPEATED):
            first, second = (local.replace(tzinfo=self.zone, fold=fold).utcoffset() for fold in (0, 1))
            if first is None or second is None or first < second:
                continue  # the clock skips it
            seconds = local.replace(tzinfo=UTC).timestamp()
            at = int(seconds - first.total_seconds())
            while again and again[0] < at:
                if (earlier := again.pop(0)) > after:
                    yield earlier
            if at > after:
                yield at
            if first > second:
                again.append(int(seconds - second.total_seconds()))


@lru_cache(maxsize=8192)
def _times_between(expression: CronExpression, begin: int, end: int) -> Floats:
    """Many CronJobs share few schedules, and all are asked about the same hours."""
    times = np.fromiter(takewhile(lambda at: at <= end, expression._times(begin)), dtype=np.float64)
    times.flags.writeable = False
    return times


@lru_cache(maxsize=8192)
def _parsed(schedule: str, time_zone: str) -> CronExpression:
    zone = zone_named(time_zone)
    if len(schedule) > _LONGEST or "TZ" in schedule:
        raise InputError(
            f"schedule {schedule[:40]!r} is too long, or names a time zone: the zone of a CronJob is in spec.timeZone"
        )
    if schedule.startswith("@every "):
        return CronExpression("* * * * *", zone, _seconds(schedule.removeprefix("@every ")))
    fields = _DESCRIBED.get(schedule, schedule).split()
    if len(fields) != 5:
        raise InputError(
            f"schedule {schedule[:40]!r} is none: write minute, hour, day, month and weekday, such as 0 3 * * 1-5, "
            f"or one of {', '.join(_DESCRIBED)}, @every 90m"
        )
    try:
        read = " ".join(_field(text, *field) for text, field in zip(fields, _FIELDS, strict=True))
        CronSim(read, datetime.fromtimestamp(0, UTC))
    except CronSimError as error:
        raise InputError(f"schedule {schedule[:40]!r}: {error}; write one such as 0 3 * * 1-5") from error
    return CronExpression(read, zone)


def _field(text: str, field: Field, name: str, lowest: int, highest: int) -> str:
    """A field as cronsim reads it: there Sunday is 7, too, "*/2" is no restriction of days, and "4-4/2" is "4/2"."""
    parts = []
    for part in filter(None, text.split(",")):
        span, slash, step = part.partition("/")
        if not _PART.fullmatch(part) or any(int(number) > highest for number in re.findall("[0-9]+", span)):
            raise InputError(
                f"the {name} of a schedule has {part[:40]!r}: write values from {lowest} to {highest}, such as 5, 1-5, "
                "*/15 or *"
            )
        if span[0] in "*?":
            span = f"{lowest}-{highest}"
            if not step or int(step) == 1:
                return "*"
        elif slash and "-" not in span:
            span += f"-{highest}"
        low, _, high = span.upper().partition("-")
        parts.append(low if high and field.int(low) == field.int(high) else span + slash + step)
    return ",".join(parts)


def _seconds(duration: str) -> int:
    """Return the whole seconds of "@every", at least one: a duration may be 0 or below it, as Go reads it."""
    seconds = math.inf
    if _DURATION.fullmatch(duration):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([0-9.]+)([a-zµμ]+)", duration))
    if seconds > _LONGEST_DURATION:
        raise InputError(f"{duration[:40]!r} is no duration up to 292 years: write @every and one such as 1h30m")
    return 1 if duration.startswith("-") else max(1, int(seconds + 1e-9))
