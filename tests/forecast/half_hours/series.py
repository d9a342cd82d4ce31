"""Series of half hours whose distribution is known."""

from __future__ import annotations

import numpy as np

from base.arrays import Floats
from forecast.calendar import Days
from forecast.half_hours.groups import SeriesGroups


def days_from_monday(n_days: int) -> Days:
    """A calendar without holidays that begins on a Monday."""
    weekday = np.arange(n_days) % 7
    return Days(weekday, np.maximum(weekday - 4, 0))


def noisy(n_series: int, n_days: int, *, noise: float = 0.2, seed: int = 0) -> Floats:
    """An evening peak, half of it at weekends, of sizes from 0.01 to 100: (n_series, n_days, 48)."""
    rng = np.random.default_rng(seed)
    shape = 0.3 + np.exp(-(((np.arange(48) - 40) / 5) ** 2))
    size = np.logspace(-2, 2, n_series)[:, None, None]
    week = np.where(np.arange(n_days) % 7 >= 5, 0.5, 1.0)[:, None]
    return np.asarray(size * week * shape * rng.lognormal(0, noise, (n_series, n_days, 48)))


def alike(n_series: int) -> SeriesGroups:
    """All series in one group."""
    return SeriesGroups.one(n_series)
