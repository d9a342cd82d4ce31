"""Public holidays: kept out of the ordinary profiles, and forecast from earlier holidays.

A holiday in history would pull down its weekday's profile, so predictors do not see it. A holiday to come is forecast
from two sources: the service's own earlier holidays, rescaled to today's level, and a prior mixed from the
ordinary day and the Sunday, with the share that explains the cluster's earlier holidays best (all Sunday where there
have been none). k holidays of its own count k / (k + 1).
"""

from __future__ import annotations

import warnings

import numpy as np

from forecast.arrays import AnyFloats, Bools, Floats
from forecast.calendar import Days, DayType

_LEVEL_REACH_DAYS = 7
_LARGEST_LEVEL_CHANGE = 5.0


def as_ordinary(days: Days) -> Days:
    """The same days with every holiday described as the weekday it falls on."""
    weekend = np.where(
        days.weekday == 5, DayType.SATURDAY, np.where(days.weekday == 6, DayType.SUNDAY, DayType.WORKDAY)
    )
    return Days(days.weekday, weekend.astype(np.int64))


def without_holidays(usage: AnyFloats, days: Days) -> Floats:
    """A copy in which holidays are not measured: (..., n_days, 48)."""
    ordinary = np.array(usage, dtype=np.float64)
    ordinary[..., days.day_type == DayType.HOLIDAY, :] = np.nan
    return ordinary


def holiday_curves(usage: AnyFloats, days: Days, ordinary: AnyFloats, sunday: AnyFloats) -> Floats:
    """Expected curve of a holiday on each of some days: (n_series, n_horizon_days, 48).

    usage    : (n_series, n_days, 48) history with its holidays
    ordinary : (n_series, n_horizon_days, 48) what the days would be as ordinary workdays
    sunday   : (n_series, 48) the Sunday profile
    """
    held = np.flatnonzero(days.day_type == DayType.HOLIDAY)
    sundays = np.broadcast_to(sunday[:, None], ordinary.shape)
    if not len(held):
        return np.array(sundays, dtype=np.float64)
    level_now = ordinary.mean(axis=(1, 2))  # (n_series,)
    own, share = [], []
    for day in held:
        level_then = _ordinary_level(usage, days, int(day))
        with np.errstate(invalid="ignore", divide="ignore"):
            change = np.where(level_then > 0, level_now / level_then, 1.0)
            change = np.clip(change, 1 / _LARGEST_LEVEL_CHANGE, _LARGEST_LEVEL_CHANGE)
            rescaled = usage[:, day] * change[:, None]  # (n_series, 48)
        own.append(rescaled)
        share.append(_sunday_share(rescaled, ordinary.mean(axis=1), sunday))
    own_curves = np.stack(own)  # (n_holidays, n_series, 48)
    known = np.isfinite(own_curves).sum(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        own_mean = np.nan_to_num(np.nanmean(own_curves, axis=0))
    weight = (known / (known + 1.0))[:, None]
    mix = float(np.mean(share))
    prior = mix * sundays + (1 - mix) * ordinary
    return np.asarray(weight * own_mean[:, None] + (1 - weight) * prior)


def _ordinary_level(usage: AnyFloats, days: Days, day: int) -> Floats:
    """Mean usage on the workdays around a holiday, which today's workday profile is compared with: (n_series,)."""
    around = np.arange(max(0, day - _LEVEL_REACH_DAYS), min(len(days), day + _LEVEL_REACH_DAYS + 1))
    around = around[days.day_type[around] == DayType.WORKDAY]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nan_to_num(np.nanmean(usage[:, around], axis=(1, 2))))


def _sunday_share(holiday: AnyFloats, ordinary: AnyFloats, sunday: AnyFloats) -> float:
    """Least-squares share of the Sunday in a holiday, 0..1; every series counts alike. All (n_series, 48)."""
    scale = np.maximum(ordinary.max(axis=1, keepdims=True), 1e-30)
    direction = (sunday - ordinary) / scale
    observed: Bools = np.isfinite(holiday)
    target = np.where(observed, holiday - ordinary, 0.0) / scale
    direction = np.where(observed, direction, 0.0)
    norm = float((direction**2).sum())
    return 1.0 if norm == 0 else float(np.clip((direction * target).sum() / norm, 0.0, 1.0))
