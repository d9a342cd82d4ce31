"""Public holidays: kept out of the ordinary profiles, and forecast from earlier holidays.

A holiday in history would pull down its weekday's profile, so predictors do not see it. A holiday to come is forecast
from two sources: the service's own earlier holidays, rescaled to today's level, and a prior mixed from the
ordinary day and the Sunday, with the share that explains the cluster's earlier holidays best (all Sunday where there
have been none). k holidays of its own count k / (k + 1).

With several countries, a holiday is forecast from earlier ones of the same countries, and services fall into two
groups, with a share of the Sunday each: those that such a day showed closer to their Sunday, and the others.
"""

from __future__ import annotations

import warnings

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY, Days, DayType

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


def curves_by_country(
    usage: AnyFloats, days: Days, festive: Bools, coming: Bools, workday: AnyFloats, sunday: AnyFloats
) -> Floats:
    """Expected curves of coming holidays, each from earlier ones of its countries: (n_series, n_coming, 48).

    usage           : (n_series, n_days, 48) history with its holidays
    festive, coming : (n_countries, n_days), (n_countries, n_coming) where past and coming days are holidays
    workday, sunday : (n_series, 48) profiles
    """
    curves = [
        holiday_curves(
            usage,
            days,
            workday[:, None],
            sunday,
            held=_like(countries, festive),
            first_share=float(countries.mean()),
            in_groups=True,
        )[:, 0]
        for countries in coming.T
    ]
    return np.stack(curves, axis=1) if curves else np.empty((len(usage), 0, SLOTS_PER_DAY))


def _like(countries: Bools, festive: Bools) -> Ints:
    """Past holidays of exactly these countries, else those of any of them. festive : (n_countries, n_days)"""
    exactly = np.flatnonzero((festive == countries[:, None]).all(axis=0))
    return exactly if len(exactly) else np.flatnonzero(festive[countries].any(axis=0))


def holiday_curves(
    usage: AnyFloats,
    days: Days,
    ordinary: AnyFloats,
    sunday: AnyFloats,
    *,
    held: Ints | None = None,
    first_share: float = 1.0,
    in_groups: bool = False,
) -> Floats:
    """Expected curve of a holiday on each of some days: (n_series, n_horizon_days, 48).

    usage    : (n_series, n_days, 48) history with its holidays
    ordinary : (n_series, n_horizon_days, 48) what the days would be as ordinary workdays
    sunday   : (n_series, 48) the Sunday profile
    held     : past holidays to learn from, None = all
    first_share : of the Sunday in a first holiday
    in_groups   : series that followed and series that did not are groups of their own
    """
    held = np.flatnonzero(days.day_type == DayType.HOLIDAY) if held is None else held
    sundays = np.broadcast_to(sunday[:, None], ordinary.shape)
    if not len(held):
        return np.asarray(first_share * sundays + (1 - first_share) * ordinary)
    level_now = ordinary.mean(axis=(1, 2))  # (n_series,)
    own, share = [], []
    for day in held:
        level_then = _ordinary_level(usage, days, int(day))
        with np.errstate(invalid="ignore", divide="ignore"):
            change = np.where(level_then > 0, level_now / level_then, 1.0)
            change = np.clip(change, 1 / _LARGEST_LEVEL_CHANGE, _LARGEST_LEVEL_CHANGE)
            rescaled = usage[:, day] * change[:, None]  # (n_series, 48)
        own.append(rescaled)
        share.append(_sunday_shares(rescaled, ordinary.mean(axis=1), sunday, in_groups=in_groups))
    own_curves = np.stack(own)  # (n_holidays, n_series, 48)
    known = np.isfinite(own_curves).sum(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        own_mean = np.nan_to_num(np.nanmean(own_curves, axis=0))
    weight = (known / (known + 1.0))[:, None]
    mix = np.mean(share, axis=0)[:, None, None]
    prior = mix * sundays + (1 - mix) * ordinary
    return np.asarray(weight * own_mean[:, None] + (1 - weight) * prior)


def _ordinary_level(usage: AnyFloats, days: Days, day: int) -> Floats:
    """Mean usage on the workdays around a holiday, which today's workday profile is compared with: (n_series,)."""
    around = np.arange(max(0, day - _LEVEL_REACH_DAYS), min(len(days), day + _LEVEL_REACH_DAYS + 1))
    around = around[days.day_type[around] == DayType.WORKDAY]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nan_to_num(np.nanmean(usage[:, around], axis=(1, 2))))


def _sunday_shares(holiday: AnyFloats, ordinary: AnyFloats, sunday: AnyFloats, *, in_groups: bool) -> Floats:
    """Least-squares share of the Sunday in a holiday, 0..1, of all series or of each one's group: (n_series,).

    Every series counts alike. All (n_series, 48).
    """
    scale = np.maximum(ordinary.max(axis=1, keepdims=True), 1e-30)
    direction = (sunday - ordinary) / scale
    observed: Bools = np.isfinite(holiday)
    target = np.where(observed, holiday - ordinary, 0.0) / scale
    direction = np.where(observed, direction, 0.0)
    along, norm = (direction * target).sum(axis=1), (direction**2).sum(axis=1)
    shares = np.full(len(holiday), _share(along, norm))
    if in_groups:
        seen: Bools = np.any(observed, axis=1)
        follows: Bools = along >= 0.5 * norm
        for group in (seen & follows, seen & ~follows):
            shares[group] = _share(along[group], norm[group])
    return shares


def _share(along: Floats, norm: Floats) -> float:
    return 1.0 if norm.sum() == 0 else float(np.clip(along.sum() / norm.sum(), 0.0, 1.0))
