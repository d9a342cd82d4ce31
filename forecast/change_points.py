"""Releases that change a service's load for good: what lies before one is brought to the level after it.

Without this, predictors see a week of which half is at another level, and last week is as wrong as they are. A change
is believed if it stands out from the day-to-day variation of the service, came within a day, and lasted since: every
day after it lies closer to the new level than to the old one, and hardly a day of the weeks before. Growth is no
change, and neither is one unusual day, nor a part of the day alone. k days since the change count k / (k + 1/2).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY

_LATEST, _EARLIEST = 3, 10
"""Whole days since the change. After more, predictors have left the old level behind by themselves."""

_DAYS_LOOKED_AT = 42
_FEWEST_DAYS_BEFORE = 14
_LEVEL_DAYS = 7
_SMALLEST_STEP = np.log(1.25)
_CLEAR = 4.0
"""Standard deviations of a day's level."""
_LEAST_NOISE = 0.04
_LARGEST_STEP = np.log(4.0)
_LIKE_STEP = 0.7
"""Share of the step by which daily peaks moved, and its inverse."""
_SUDDEN = 0.7
"""Share of the step between the two days before and the two days after."""
_PRIOR_DAYS = 0.5
_MOVED_SLOTS, _LEAST_WAY = 0.8, 0.5
"""Share of the day's half hours that moved, each by at least this share of the step and at most by its inverse."""
_CHUNK = 4096


@dataclass(frozen=True, slots=True)
class LevelChanges:
    """The latest change of each series.

    slot : (n_series,) half hour of the history from which the new level holds; 0 = no change
    step : (n_series,) log(level after / level before), as far as it is believed; 0 = no change
    """

    slot: Ints
    step: Floats

    @property
    def any(self) -> bool:
        return bool((self.step != 0).any())

    def factor(self, end_day: int, first_day: int = 0) -> Floats:
        """What brings each half hour of some days to the level of today: (n_series, n_days, 48)."""
        before = np.arange(first_day * SLOTS_PER_DAY, end_day * SLOTS_PER_DAY) < self.slot[:, None]
        factor: Floats = np.where(before, np.exp(self.step)[:, None], 1.0)
        return factor.reshape(len(self.step), end_day - first_day, SLOTS_PER_DAY)

    def bring_to_today(self, usage: AnyFloats) -> None:
        """Multiply what lies before a change, in place: of most series nothing. usage : (n_series, n_days, 48)"""
        rows = np.flatnonzero(self.step)
        usage[rows] *= LevelChanges(self.slot[rows], self.step[rows]).factor(usage.shape[1])


def level_changes(usage: AnyFloats, weekday: Ints, follows_load: Bools) -> LevelChanges:
    """Find the change of the last days in each series, if there was one.

    usage   : (n_series, n_days, 48) ordinary days, NaN = not measured
    weekday : (n_days,) 0..6
    follows_load : (n_series,) others have no changes: memory falls with every restart and grows again
    """
    n_series, n_days = usage.shape[:2]
    found = LevelChanges(np.zeros(n_series, dtype=np.int64), np.zeros(n_series))
    earliest = min(_EARLIEST, n_days - _FEWEST_DAYS_BEFORE - 1)
    if earliest < _LATEST:
        return found
    start = max(0, n_days - _DAYS_LOOKED_AT)
    for first in range(0, n_series, _CHUNK):
        rows = slice(first, first + _CHUNK)
        slot, step = _changes(np.asarray(usage[rows, start:], dtype=np.float64), weekday[start:], earliest)
        found.slot[rows], found.step[rows] = np.where(step != 0, slot + start * SLOTS_PER_DAY, 0), step
    found.step[~follows_load] = 0.0
    found.slot[~follows_load] = 0
    return found


def _changes(usage: Floats, weekday: Ints, earliest: int) -> tuple[Ints, Floats]:
    """Slot and step of each series, see `LevelChanges`. usage : (n_series, n_days, 48)"""
    n_days = usage.shape[1]
    shape = _shape(usage[:, :-earliest], weekday)
    level = _log_ratio(usage, shape)  # (n_series, n_days)
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # days without data
        peak = np.log(np.nanmax(usage, axis=2) / np.nanmax(shape, axis=2))  # (n_series, n_days)
    slot, step = np.zeros(len(usage), dtype=np.int64), np.zeros(len(usage))
    least = np.full(len(usage), np.inf)
    for since in range(_LATEST, earliest + 1):
        day = n_days - 1 - since  # on which or about which it came: its hours may be of both levels
        new, size, scatter = _step_on(level, day)
        as_a_whole = _whole_day_moved(usage[:, day + 1 :], shape[:, day + 1 :], new - size, new)
        size = np.where(as_a_whole & _peaks_moved(peak, day, size), size, 0.0)
        better = np.flatnonzero((size != 0) & (scatter < least))
        if not len(better):
            continue
        least[better] = scatter[better]
        step[better], around = size[better], slice(day - 1, day + 2)
        old = new[better] - size[better]
        hour = _moment(usage[better, around], shape[better, around], old, new[better])
        slot[better] = (day - 1) * SLOTS_PER_DAY + hour
    days_since = n_days - slot / SLOTS_PER_DAY
    return slot, step * days_since / (days_since + _PRIOR_DAYS)


def _step_on(level: Floats, day: int) -> tuple[Floats, Floats, Floats]:
    """Level after a day, step from the level before (0 = none that is clear), and mean distance of days from both.

    level : (n_series, n_days) logarithms
    """
    before, after = level[:, max(0, day - _FEWEST_DAYS_BEFORE) : day], level[:, day + 1 :]
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # series without data
        new, old = np.nanmedian(after, axis=1), np.nanmedian(before[:, -_LEVEL_DAYS:], axis=1)
        step = new - old
        noise = 1.4826 * np.nanmedian(np.abs(before - np.nanmedian(before, axis=1, keepdims=True)), axis=1)
        sudden = np.nanmean(after[:, :2], axis=1) - np.nanmean(before[:, -2:], axis=1)
        scatter = np.nanmean(np.abs(np.hstack([before - old[:, None], after - new[:, None]])), axis=1)
        # Days as shares of the way from the old level to the new one; comparisons with NaN are false.
        n_off_before = ((before - old[:, None]) / step[:, None] > 0.5).sum(axis=1)
        n_off_after = ((after - old[:, None]) / step[:, None] < 0.5).sum(axis=1)
        clear: Bools = (
            (np.abs(step) <= _LARGEST_STEP)
            & (np.abs(step) >= np.maximum(_SMALLEST_STEP, _CLEAR * np.maximum(noise, _LEAST_NOISE)))
            & (sudden / step >= _SUDDEN)
            & (n_off_before <= 1)
            & (n_off_after == 0)
            & (np.isfinite(before).sum(axis=1) >= _LEVEL_DAYS)
            & (np.isfinite(after).sum(axis=1) >= _LATEST)
        )
    return new, np.where(clear, step, 0.0), scatter


def _whole_day_moved(usage: Floats, shape: Floats, old: Floats, new: Floats) -> Bools:
    """Whether the half hours since lie closer to the new level, by day as by night: (n_series,).

    A job that runs an hour longer changes a day's sum as well, but is no factor of the day.
    usage, shape : (n_series, n_days_since, 48)
    """
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # half hours without data
        way = (np.nanmedian(np.log(usage / shape), axis=1) - old[:, None]) / (new - old)[:, None]  # (n_series, 48)
    known = np.isfinite(way)
    moved = (known & (way > _LEAST_WAY) & (way < 1 / _LEAST_WAY)).sum(axis=1)
    return np.asarray(moved >= _MOVED_SLOTS * np.maximum(known.sum(axis=1), 1))


def _peaks_moved(peak: Floats, day: int, step: Floats) -> Bools:
    """Whether the peaks of the days rose or fell by about as much. peak : (n_series, n_days) log(peak / usual)"""
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # series without data
        before = np.nanmedian(peak[:, max(0, day - _FEWEST_DAYS_BEFORE) : day], axis=1)
        share = (np.nanmedian(peak[:, day + 1 :], axis=1) - before) / step
    return np.asarray((share > _LIKE_STEP) & (share < 1 / _LIKE_STEP))


def _shape(known: Floats, weekday: Ints) -> Floats:
    """What each day would be by the same weekdays of before any change: (n_series, n_days, 48).

    known   : (n_series, n_known_days, 48) days before any change
    weekday : (n_days,) of these, and of the days since
    """
    of_known = weekday[: known.shape[1]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # series without data
        usual = np.nanmean(known, axis=1)
        of_weekday = np.stack([np.nanmean(known[:, of_known == day], axis=1) for day in range(7)], axis=1)
    return np.where(np.isfinite(of_weekday), of_weekday, usual[:, None])[:, weekday]


def _log_ratio(usage: Floats, shape: Floats) -> Floats:
    """log(used / shape) of each day, NaN where less than half of it was measured or nothing was used: (..., n_days)."""
    known = np.isfinite(usage) & np.isfinite(shape)
    used, usual = np.where(known, usage, 0.0).sum(axis=-1), np.where(known, shape, 0.0).sum(axis=-1)
    enough = (known.mean(axis=-1) >= 0.5) & (used > 0) & (usual > 0)
    return np.log(np.where(enough, used, np.nan) / np.where(enough, usual, 1.0))


def _moment(usage: Floats, shape: Floats, old: Floats, new: Floats) -> Ints:
    """The half hour from which the level is the new one, of some days: (n_series,). usage, shape : (n_series, n, 48)"""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(usage / shape).reshape(len(usage), -1)
        # Nearer to the old level is negative: the change comes where the sum of what lies before is lowest.
        leaning = np.abs(ratio - old[:, None]) - np.abs(ratio - new[:, None])
    before = np.cumsum(np.where(np.isfinite(leaning), leaning, 0.0), axis=1)
    return np.asarray(np.hstack([np.zeros((len(usage), 1)), before]).argmin(axis=1), dtype=np.int64)
