"""What past days would have been, had they been ordinary: the yardstick of events and month ends.

A day is held against the expected curve of its weekday, or of a holiday, brought to the level of the ordinary days
around it, so that growth since then is no effect of the day.
"""

from __future__ import annotations

import warnings

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.calendar import Days, DayType

_REACH_DAYS = 7
_HOLIDAY = 7
"""Position after those of the weekdays."""
_SMALLEST_SHARE = 1e-6
"""Logarithms of ratios stay finite: nothing at all counts as this share of what is usual."""


def expected_curves(ordinary: AnyFloats, horizon: Days, holiday: AnyFloats) -> Floats:
    """Mean expected curve of each weekday, and of holidays: (n_series, 8, 48). Two weeks hold every weekday.

    ordinary : (n_series, n_horizon_days, 48) expected curves without holidays and events
    holiday  : (n_series, 48)
    """
    weekdays = [ordinary[:, horizon.weekday == day].mean(axis=1) for day in range(7)]
    return np.stack([*weekdays, holiday], axis=1)


def expected_then(usage: AnyFloats, curves: AnyFloats, days: Days) -> Floats:
    """What each past day would have been without its event: (n_series, n_days, 48); NaN without days around it.

    usage  : (n_series, n_days, 48) ordinary days only, NaN = not measured, or no ordinary day
    curves : (n_series, 8, 48) from `expected_curves`
    """
    of_day = curves[:, np.where(days.day_type == DayType.HOLIDAY, _HOLIDAY, days.weekday)]  # (n_series, n_days, 48)
    measured = np.isfinite(usage)
    level = _ratio(np.where(measured, usage, 0.0).sum(axis=2), np.where(measured, of_day, 0.0).sum(axis=2))
    around = np.full_like(level, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # series without an ordinary day around
        for day in range(level.shape[1]):
            near = np.arange(max(0, day - _REACH_DAYS), min(level.shape[1], day + _REACH_DAYS + 1))
            around[:, day] = np.nanmedian(level[:, near[near != day]], axis=1) if len(near) > 1 else np.nan
    return of_day * around[:, :, None]


def log_effect(usage: AnyFloats, expected: AnyFloats) -> Floats:
    """log(used / expected) over the last axis, of slots in which both are known; NaN without any: (...,)."""
    known = np.isfinite(usage) & np.isfinite(expected)
    ratio = _ratio(np.where(known, usage, 0.0).sum(axis=-1), np.where(known, expected, 0.0).sum(axis=-1))
    return np.asarray(np.log(np.maximum(ratio, _SMALLEST_SHARE)))


def _ratio(used: Floats, expected: Floats) -> Floats:
    return np.where(expected > 0, used / np.where(expected > 0, expected, 1.0), np.nan)
