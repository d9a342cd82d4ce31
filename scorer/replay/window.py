"""The stretch of time that a replay plays back: from the moment of placement, some times 24 hours."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from numpy.typing import NDArray

from base.errors import InputError, NotEnoughHistory
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History

DEFAULT_HOUR = 4
"""Releases happen when nothing is going on: every node looks idle then."""

LEAST_DAYS_BEFORE: Final = 7
"""A forecast knows each weekday once."""

WHOLE_WEEK: Final = 7
"""Days of a window from which on it has every weekday."""


@dataclass(frozen=True, slots=True)
class ReplayWindow:
    """What is played back. Slots of the replay count from `first_slot` of the first day.

    first_day  : index of days[0] in the history; a forecast may know the days before it
    days       : consecutive local days that the window touches
    first_slot : slot of days[0] at which the pods are placed
    n_days     : whole 24-hour periods played back
    """

    first_day: int
    days: tuple[date, ...]
    first_slot: int
    n_days: int

    @property
    def n_slots(self) -> int:
        return self.n_days * SLOTS_PER_DAY

    @property
    def history_slot(self) -> int:
        """Slot of the placement, counted from midnight of the history's first day."""
        return self.first_day * SLOTS_PER_DAY + self.first_slot

    def to_json(self) -> dict[str, Any]:
        """The window in the files of `--json`. learned_days: those of the history before it"""
        return {
            "first_day": self.days[0].isoformat(),
            "first_slot": self.first_slot,
            "days": self.n_days,
            "learned_days": self.first_day,
        }

    def cut(self, by_day: NDArray[Any]) -> NDArray[Any]:
        """(..., len(days), 48) -> (..., n_slots): the slots of the window, in one row."""
        return flat(by_day)[..., self.first_slot : self.first_slot + self.n_slots]


def flat(by_day: NDArray[Any]) -> NDArray[Any]:
    """(..., n_days, 48) -> (..., n_days * 48)."""
    return by_day.reshape(*by_day.shape[:-2], -1)


def playable_days(history: History, usual: int) -> int:
    """Return how many of the usual 24-hour periods a history has room for after the week to learn from; at least 1."""
    return max(1, min(usual, history.n_days - LEAST_DAYS_BEFORE - 1))


def replay_window(history: History, at: datetime | None = None, days: int = 7) -> ReplayWindow:
    """Where a replay begins and ends.

    at   : moment of placement; naive = local time. Default: the last 04:00 local that leaves `days` times 24 hours
    days : 24-hour periods to play back
    """
    if at is None:
        slot = DEFAULT_HOUR * SLOTS_PER_DAY // 24
        index = history.n_days - days - 1
    else:
        try:
            day, slot = history.calendar.day_and_slot(at)
        except OverflowError as error:
            raise InputError(f"{at} lies outside the calendar: choose a time within the history") from error
        index = (day - history.days[0]).days
        end = index * SLOTS_PER_DAY + slot + days * SLOTS_PER_DAY
        if index >= history.n_days or end > history.n_days * SLOTS_PER_DAY:
            latest = history.days[-1] + timedelta(days=1 - days)
            raise InputError(
                f"from {at:%Y-%m-%d %H:%M} on the history does not hold {days} more days, it ends with "
                f"{history.days[-1]}: choose a time up to {latest} 00:00, or fewer --days"
            )
    if index < LEAST_DAYS_BEFORE:
        earliest = history.days[0] + timedelta(days=LEAST_DAYS_BEFORE)
        if at is not None and history.n_days > LEAST_DAYS_BEFORE + days:
            raise InputError(
                f"{max(index, 0)} whole local days of the history lie before {at:%Y-%m-%d %H:%M}, "
                f"{LEAST_DAYS_BEFORE} are needed to learn from: choose a time from {earliest} 00:00 on"
            )
        most = playable_days(history, days)
        has_room = most < days and history.n_days > LEAST_DAYS_BEFORE + 1
        raise NotEnoughHistory(
            days=history.n_days,
            needed=LEAST_DAYS_BEFORE + days + 1,
            purpose=f"learn from a week and play {days} day{'s' if days > 1 else ''} back from the first 04:00 on",
            way_out=f"play at most {most} back with --days" if has_room else "",
        )
    n_touched = -(-(slot + days * SLOTS_PER_DAY) // SLOTS_PER_DAY)
    return ReplayWindow(first_day=index, days=history.days[index : index + n_touched], first_slot=slot, n_days=days)
