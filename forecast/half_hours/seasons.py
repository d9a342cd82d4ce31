"""What the half hour is like over weeks: means, extremes, and the days that resemble the coming one."""

from __future__ import annotations

from functools import partial

import numpy as np

from base.arrays import AnyFloats
from forecast.half_hours.feature import Feature
from forecast.half_hours.midnight import Midnight


def _quantile(share: float, midnight: Midnight) -> AnyFloats:
    n_days = midnight.known.shape[1]
    at = round(share * (n_days - 1))
    return np.partition(midnight.known, at, axis=1)[:, at]


def _same_weekday(midnight: Midnight) -> AnyFloats:
    weeks = [midnight.days_back(7 * back) for back in range(1, midnight.known.shape[1] // 7 + 1)]
    return np.mean(weeks, axis=0) if weeks else midnight.yesterday


def _like_days(n_days: int, midnight: Midnight) -> AnyFloats:
    """Mean of workdays before a workday, of free days before a free one; of all days where there is none."""
    known, is_like = midnight.known[:, -n_days:], midnight.is_like[-n_days:]
    return np.asarray((known[:, is_like] if is_like.any() else known).mean(axis=1))


def _around(midnight: Midnight) -> AnyFloats:
    mean = midnight.known.mean(axis=1)
    return np.asarray((np.roll(mean, 1, axis=1) + np.roll(mean, -1, axis=1)) / 2)


FEATURES = (
    Feature("usual", lambda midnight: midnight.usual, is_level=False),
    Feature("mean_28_days", lambda midnight: midnight.known.mean(axis=1)),
    Feature("mean_28_days_around", _around),
    Feature("low_28_days", partial(_quantile, 0.1)),
    Feature("high_28_days", partial(_quantile, 0.9)),
    Feature("least_28_days", lambda midnight: midnight.known.min(axis=1)),
    Feature("most_28_days", lambda midnight: midnight.known.max(axis=1)),
    Feature("mean_7_days", lambda midnight: midnight.week.mean(axis=1)),
    Feature("median_7_days", lambda midnight: np.median(midnight.week, axis=1)),
    Feature("least_7_days", lambda midnight: midnight.week.min(axis=1)),
    Feature("most_7_days", lambda midnight: midnight.week.max(axis=1)),
    Feature("same_weekday", _same_weekday),
    Feature("like_days_28", partial(_like_days, 28)),
    Feature("like_days_7", partial(_like_days, 7)),
)
