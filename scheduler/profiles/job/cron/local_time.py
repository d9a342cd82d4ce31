"""Local time as Go reckons with it (package time), in whole seconds; local = unix seconds + the zone's offset."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from base.errors import InputError

DAY_SECONDS = 86_400
_EPOCH = date(1970, 1, 1).toordinal()
_HOUR = 3600


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
