"""What is known of some series at a midnight, in units in which a calm and a wild series look alike.

The unit of a series is its mean change from one day to the next. In it, an error of 1 is a usual one for every series,
so that one model can learn from all, and none is heard more because it is large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from forecast.calendar import SLOTS_PER_DAY, Days, DayType
from forecast.half_hours.groups import GroupMoves

KNOWN_DAYS = 28
"""Days that are looked at: each weekday four times."""

_LEAST_UNIT = 0.01
"""Of the level: a series that never changes keeps a unit."""

_LARGEST = 1e4
"""In units: a burst after weeks of silence stays a number that trees and sums of squares can hold."""


@dataclass(frozen=True, slots=True)
class Midnight:
    """Some series before one target day.

    known    : (n_series, n_days <= 28, 48) in units, oldest day first, no gaps
    usual    : (n_series, 48) median of each half hour
    is_like  : (n_days,) which of the days are free if the target is, or workdays if it is one
    weekday, day_type : of the target day
    resource : (n_series,)
    moves    : what groups of series did yesterday
    """

    known: Floats32
    usual: Floats32
    is_like: Bools
    weekday: int
    day_type: int
    resource: Ints
    moves: GroupMoves

    @property
    def week(self) -> Floats32:
        """(n_series, <= 7, 48)"""
        return self.known[:, -7:]

    @property
    def yesterday(self) -> Floats32:
        """(n_series, 48)"""
        return self.known[:, -1]

    def days_back(self, days: int) -> Floats32:
        """The day so many days before the target, (n_series, 48); in a short history a later one of its weekday."""
        n_days = self.known.shape[1]
        while days > n_days:
            days -= 7
        return self.known[:, -days] if days > 0 else self.yesterday

    def all_day(self, values: AnyFloats | Ints) -> AnyFloats:
        """A value a series for every half hour: (n_series,) -> (n_series, 48)."""
        return np.broadcast_to(values[:, None].astype(np.float32), (len(values), SLOTS_PER_DAY))


def midnight_of(
    known: AnyFloats, unit: AnyFloats, days: Days, target: Days, resource: Ints, moves: GroupMoves
) -> Midnight:
    """Look at the last 28 of the days before a target.

    known  : (n_series, n_days, 48) base units, no gaps
    unit   : (n_series,) from `SeriesUnits`
    days   : these days
    target : the day after them (length 1)
    """
    recent = known[:, -KNOWN_DAYS:]
    scaled = np.minimum(recent / unit[:, None, None], _LARGEST).astype(np.float32)
    is_free = days.day_type[-KNOWN_DAYS:] != DayType.WORKDAY
    return Midnight(
        scaled,
        np.median(scaled, axis=1),
        is_free == (target.day_type[0] != DayType.WORKDAY),
        int(target.weekday[0]),
        int(target.day_type[0]),
        resource,
        moves,
    )


@dataclass(frozen=True, slots=True)
class SeriesUnits:
    """Mean change of a half hour from one day to the next, over the days that a midnight looks at.

    change : (n_series, n_days) mean absolute difference of each day to the one before it
    level  : (n_series, n_days) mean of each day
    """

    change: Floats
    level: Floats

    @classmethod
    def of(cls, known: AnyFloats) -> SeriesUnits:
        """known : (n_series, n_days, 48) base units, no gaps"""
        level = known.mean(axis=2, dtype=np.float64)
        change = np.zeros_like(level)
        for day in range(1, known.shape[1]):  # one at a time: a difference of all would double the memory
            change[:, day] = np.abs(known[:, day] - known[:, day - 1]).mean(axis=1)
        return cls(change, level)

    def on(self, day: int) -> Floats:
        """Of the days before this one: (n_series,); 0 = never used."""
        first = max(0, day - KNOWN_DAYS)
        level = self.level[:, first:day].mean(axis=1)
        if day - first < 2:
            return np.asarray(level)
        return np.asarray(np.maximum(self.change[:, first + 1 : day].mean(axis=1), _LEAST_UNIT * level))
