"""The fixed rules that a forecast of daily peaks has to beat.

Others compare against these definitions, so they do not change. Each is a pure function of the days before the origin:

    peaks : (n_series, n_days) highest half hour of each day, NaN = not measured
    usage : (n_series, n_days, 48) half-hour means, NaN = not measured
    returns the forecasts of the next day's peak at 0.5 and at 0.95, (n_series,) each

A day that was not measured is NaN in the forecast of a rule that looks at this one day only.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.peak_statistics import smoothed_peaks
from forecast.quantiles import nan_quantile

Baseline = Callable[[Floats, AnyFloats], tuple[Floats, Floats]]
WEEK = 7
_GAINS = tuple(product((0.05, 0.1, 0.2, 0.35, 0.55, 0.8), (0.0, 0.1, 0.25)))


def yesterday(peaks: Floats, usage: AnyFloats) -> tuple[Floats, Floats]:
    """Yesterday's peak."""
    return _day(peaks, 1), _day(peaks, 1)


def same_day_last_week(peaks: Floats, usage: AnyFloats) -> tuple[Floats, Floats]:
    """The peak a week ago; at 0.95 the larger of that and yesterday's."""
    return _day(peaks, WEEK), np.fmax(_day(peaks, WEEK), _day(peaks, 1))


def seven_days(peaks: Floats, usage: AnyFloats) -> tuple[Floats, Floats]:
    """Median and maximum of the last 7 daily peaks."""
    return nan_quantile(peaks[:, -WEEK:], 0.5), nan_quantile(peaks[:, -WEEK:], 1.0)


def quantiles_28_days(peaks: Floats, usage: AnyFloats) -> tuple[Floats, Floats]:
    """Quantiles of the last 28 daily peaks."""
    return nan_quantile(peaks[:, -28:], 0.5), nan_quantile(peaks[:, -28:], 0.95)


def n_sigma(peaks: Floats, usage: AnyFloats) -> tuple[Floats, Floats]:
    """Mean + 2 and + 5 standard deviations of the last day's samples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a day without samples stays NaN
        mean = np.nanmean(usage[:, -1].astype(np.float64), axis=1)
        std = np.nanstd(usage[:, -1].astype(np.float64), axis=1)
    return mean + 2 * std, mean + 5 * std


def rc_like(peaks: Floats, usage: AnyFloats) -> tuple[Floats, Floats]:
    """0.95 and 0.99 quantile of the samples of 7 days, in the manner of Resource Central (Cortez et al., SOSP 2017)."""
    samples = usage[:, -WEEK:].reshape(len(usage), -1)
    return nan_quantile(samples, 0.95), nan_quantile(samples, 0.99)


def decayed_quantiles_14_days(peaks: Floats, usage: AnyFloats) -> tuple[Floats, Floats]:
    """Weighted quantiles of 14 daily peaks, half-life 2 days, like Autopilot's (Rzadca et al., EuroSys 2020).

    The smallest peak at which the cumulated weight reaches the quantile; no interpolation.
    """
    window = peaks[:, -14:]
    weight = 0.5 ** (np.arange(window.shape[1])[::-1] / 2)
    ascending = np.argsort(window, axis=1)  # NaN last
    mass = np.where(np.isfinite(window), weight, 0.0)
    cumulated = np.cumsum(np.take_along_axis(mass, ascending, axis=1), axis=1)
    total = cumulated[:, -1:]
    share = cumulated / np.where(total > 0, total, np.nan)
    result = []
    for quantile in (0.5, 0.95):
        position = np.minimum((share < quantile - 1e-9).sum(axis=1), window.shape[1] - 1)
        column = np.take_along_axis(ascending, position[:, None], axis=1)
        result.append(np.where(total[:, 0] > 0, np.take_along_axis(window, column, axis=1)[:, 0], np.nan))
    return result[0], result[1]


def exponential_smoothing(peaks: Floats, usage: AnyFloats) -> tuple[Floats, Floats]:
    """Level plus additive weekly season of the daily peaks; at 0.95 + 1.645 standard deviations of one-day errors.

    Level and season gains are chosen per series from a grid by the squared one-day errors after the first week
    (ETS(A,N,A), Hyndman & Athanasopoulos, "Forecasting", sec. 8.5). Without a second week: the mean of the first.
    """
    forecast = smoothed_peaks(peaks, _GAINS).forecast[:, -1]
    return forecast[:, 0], forecast[:, 1]


def _day(peaks: Floats, days_ago: int) -> Floats:
    """Return the peak `days_ago` days before the origin, (n_series,), NaN where the history does not reach."""
    return peaks[:, -days_ago].copy() if peaks.shape[1] >= days_ago else np.full(len(peaks), np.nan)


BASELINES: dict[str, Baseline] = {
    rule.__name__: rule
    for rule in (
        yesterday,
        same_day_last_week,
        seven_days,
        quantiles_28_days,
        n_sigma,
        rc_like,
        decayed_quantiles_14_days,
        exponential_smoothing,
    )
}
