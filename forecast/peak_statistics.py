"""Each day of each series in a few numbers: what the rules and the trees of the peak forecast look at."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from forecast.calendar import Days
from forecast.quantiles import nan_quantile

_WEEK = 7
_GAINS = tuple(product((0.05, 0.2, 0.5), (0.0, 0.1, 0.25)))
"""Level and season gains among which every series finds its own: fewer than the baseline has, which cost less."""

_NORMAL_95 = 1.645


@dataclass(frozen=True, slots=True)
class DailyStatistics:
    """All (n_series, n_days) and NaN where not measured, unless said otherwise.

    resource  : (n_series,) group that shares weights, e.g. the resource index
    peak_slot : half hour of the peak, 0..47
    evening   : mean of the last four hours
    high      : 0.9 quantile of the half hours
    market    : median log move of the day's peak against its week, over the series of the group
    smoothed  : exponential smoothing of the peaks
    """

    days: Days
    resource: Ints
    peak: Floats
    mean: Floats
    std: Floats
    high: Floats
    evening: Floats
    peak_slot: Floats
    market: Floats
    smoothed: SmoothedPeaks


@dataclass(frozen=True, slots=True)
class SmoothedPeaks:
    """What exponential smoothing says of each day's peak from the days before it; the last day follows the history.

    forecast : (n_series, n_days + 1, 2) at 0.5 and 0.95, >= 0
    level    : (n_series, n_days + 1) the forecast at 0.5 without its weekday
    """

    forecast: Floats
    level: Floats

    def ahead(self, rows: Ints, origin: int, lead: int) -> Floats:
        """Forecast of the day `lead` days after the last known one, days [0, origin) are known: (n_rows, 2), >= 0.

        The season of a weekday is what it was when such a day was last forecast.
        """
        same_weekday = origin + lead - 1 - _WEEK * ((lead + _WEEK - 2) // _WEEK)
        mid = self.level[rows, origin]
        if same_weekday >= 0:
            mid = mid + self.forecast[rows, same_weekday, 0] - self.level[rows, same_weekday]
        width = self.forecast[rows, origin, 1] - self.forecast[rows, origin, 0]
        return np.asarray(np.maximum(np.stack([mid, mid + width], axis=1), 0.0), dtype=np.float64)


def daily_statistics(usage: AnyFloats, resource: Ints, days: Days) -> DailyStatistics:
    """usage: (n_series, n_days, 48) half-hour means, NaN = not measured; resource: (n_series,)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # days without samples are NaN on purpose
        peak = np.nanmax(usage, axis=2).astype(np.float64)
        mean: Floats = np.asarray(np.nanmean(usage, axis=2, dtype=np.float64))
        std: Floats = np.asarray(np.nanstd(usage, axis=2, dtype=np.float64))
        evening: Floats = np.asarray(np.nanmean(usage[:, :, -8:], axis=2, dtype=np.float64))
        high = nan_quantile(usage, 0.9)
        highest = np.where(np.isfinite(usage), usage, -np.inf).argmax(axis=2)
        peak_slot = np.where(np.isfinite(peak), highest, np.nan)
        market = _market(peak, resource)
    return DailyStatistics(days, resource, peak, mean, std, high, evening, peak_slot, market, smoothed_peaks(peak))


def _market(peak: Floats, resource: Ints) -> Floats:
    market = np.zeros_like(peak)
    for day in range(1, peak.shape[1]):
        usual = nan_quantile(peak[:, max(0, day - 7) : day], 0.5)
        comparable = (peak[:, day] > 0) & (usual > 0)
        move = np.log(np.where(comparable, peak[:, day] / np.where(comparable, usual, 1.0), np.nan))
        for group in np.unique(resource):
            members = resource == group
            market[members, day] = np.nan_to_num(np.nanmedian(move[members]) if members.any() else 0.0)
    return market


def smoothed_peaks(peak: Floats, gains: Sequence[tuple[float, float]] = _GAINS) -> SmoothedPeaks:
    """Level and additive weekly season of daily peaks, ETS(A,N,A), with the gains of least squared error so far.

    Hyndman & Athanasopoulos, "Forecasting: Principles and Practice", 3rd ed., sec. 8.5. At 0.95 + 1.645 standard
    deviations of the one-day errors.

    peak  : (n_series, n_days), NaN = not measured; such a day changes nothing
    gains : of level and season
    Forecasts of the first week are means of the days before.
    """
    n_series, n_days = peak.shape
    result, levels = np.zeros((n_series, n_days + 1, 2)), np.zeros((n_series, n_days + 1))
    measured = np.isfinite(peak)
    known = np.where(measured, peak, 0.0)
    for day in range(1, min(_WEEK, n_days + 1)):
        levels[:, day] = known[:, :day].sum(axis=1) / np.maximum(measured[:, :day].sum(axis=1), 1)
        result[:, day] = levels[:, day, None]
    if n_days < _WEEK:
        return SmoothedPeaks(result, levels)
    start = known[:, :_WEEK].sum(axis=1) / np.maximum(measured[:, :_WEEK].sum(axis=1), 1)
    season_at_start = np.where(measured[:, :_WEEK], known[:, :_WEEK] - start[:, None], 0.0)
    level_gain, season_gain = (np.array(kind)[:, None] for kind in zip(*gains, strict=True))
    level = np.repeat(start[None], len(gains), axis=0)  # (n_gains, n_series)
    season = np.repeat(season_at_start[None], len(gains), axis=0)  # (n_gains, n_series, 7)
    squared, n_errors = np.zeros_like(level), np.zeros(n_series)
    rows = np.arange(n_series)
    for day in range(_WEEK, n_days + 1):
        forecast = level + season[:, :, day % _WEEK]
        best = squared.argmin(axis=0)
        levels[:, day] = level[best, rows]
        result[:, day, 0] = forecast[best, rows]
        result[:, day, 1] = forecast[best, rows] + _NORMAL_95 * np.sqrt(squared[best, rows] / np.maximum(n_errors, 1))
        if day < n_days:
            error = np.where(measured[:, day], known[:, day] - forecast, 0.0)
            level += level_gain * error
            season[:, :, day % _WEEK] += season_gain * (1 - level_gain) * error
            squared += error * error
            n_errors += measured[:, day]
    return SmoothedPeaks(np.maximum(result, 0.0), levels)
