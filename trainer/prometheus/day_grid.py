"""The evaluation times of one UTC day. Pure.

Tick k of day D is the time D 00:00 + (k + 1) x step. What a query answers there is the mean over the step before, so it
is stored with the timestamp D 00:00 + k x step: the rows of a day lie within the day.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from base.errors import InputError

_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class DayGrid:
    """n_ticks evaluation times of a day, all of them unless the day is not over.

    first_second : seconds after midnight at which the first step begins
    """

    day: date
    step_seconds: int
    n_ticks: int
    first_second: int = 0

    @classmethod
    def of(cls, day: date, until: datetime, step_seconds: int) -> DayGrid:
        """The ticks of a day that are not after `until` (an aware datetime)."""
        if not 15 <= step_seconds <= 3600 or 3600 % step_seconds:
            raise InputError(
                f"prometheus.step is {step_seconds} s: it must divide an hour and be at least 15 s, for instance 5m"
            )
        elapsed = (until - datetime.combine(day, time(), UTC)).total_seconds()
        return cls(day, step_seconds, int(min(max(elapsed, 0), _DAY_SECONDS) // step_seconds))

    @classmethod
    def ending(cls, at: datetime, step_seconds: int, n_ticks: int) -> DayGrid:
        """The last ticks until a time that is a multiple of the step; they may begin on the day before."""
        begin = at - timedelta(seconds=step_seconds * n_ticks)
        midnight = datetime.combine(begin.date(), time(), UTC)
        return cls(begin.date(), step_seconds, n_ticks, int((begin - midnight).total_seconds()))

    @property
    def start(self) -> int:
        """Unix time of the first row: the day's midnight, unless it begins later."""
        return int(datetime.combine(self.day, time(), UTC).timestamp()) + self.first_second

    @property
    def origin(self) -> int:
        """Unix time of tick 0."""
        return self.start + self.step_seconds

    @property
    def seconds(self) -> int:
        """How much of the day there is."""
        return self.n_ticks * self.step_seconds

    def at(self, tick: int) -> datetime:
        """When a tick is evaluated."""
        return datetime.fromtimestamp(self.origin, UTC) + timedelta(seconds=tick * self.step_seconds)
