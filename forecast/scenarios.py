"""The week that could come, as last week really went: what placement weighs.

A mean curve hides which services surprise together, and no list of standard deviations says it either. A raw week of
all services at once keeps every correlation between them. Placing by a smooth mean left twice as many hot slots
as placing by last week's raw series on servers with bursts; the weeks before, weighed in, made it worse as well. What
helps is to look half an hour to both sides (`dilate`): see docs/understand/placement.md for the figures.

A raw week knows nothing of a trend or of what changed since. It is brought to the forecast's level where the forecast
knows better: where the difference is clearly more than what the service's level moves by itself from week to week, or
where forecasts of past weeks came far closer to their level than the week before did. Correcting more than that made
placement worse.
"""

from __future__ import annotations

import warnings

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from forecast.quantiles import nan_quantile

SCENARIO_DAYS = 7

SCENARIO_WEIGHTS = (1.0,)
"""Weight of each week, last week first."""

_LEVEL_DAYS = 28
_LEAST_LEVEL_NOISE = 0.05
_CLEAR_CHANGE = 3.0
"""Standard deviations of the level's own movement."""
_SMALLEST_CORRECTION = np.log(1.15)
_KNOWS_BETTER = 0.6
"""Error of the forecast level over the error of last week's level, from which on the forecast is believed."""
_LARGEST_CORRECTION = 4.0


def knows_levels(forecast: AnyFloats, actual: AnyFloats, week_before: AnyFloats) -> Bools:
    """For which services forecasts came far closer to the level of past weeks than the week before did: (...,).

    forecast, actual, week_before : (..., n_weeks) mean usage of each rehearsed week; NaN or 0 = unknown
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        of_forecast, of_week_before = np.abs(np.log(forecast / actual)), np.abs(np.log(week_before / actual))
    known = np.isfinite(of_forecast) & np.isfinite(of_week_before)
    errors = np.where(known, of_forecast, 0.0).sum(axis=-1), np.where(known, of_week_before, 0.0).sum(axis=-1)
    return np.asarray((errors[0] < _KNOWS_BETTER * errors[1]) & (errors[1] > _SMALLEST_CORRECTION))


def scenario_weeks(usage: AnyFloats, forecast: AnyFloats, knows_level: Bools | None = None) -> Floats:
    """The last weeks at today's level: (n_series, n_scenarios, 7, 48), day 0 = the day after history ends.

    usage    : (n_series, n_days, 48) NaN = not measured; such slots are taken from the forecast
    forecast : (n_series, >= 7, 48) expected usage of the days to come
    knows_level : (n_series,) from `knows_levels`; None = of none
    """
    believed = np.zeros(len(usage), dtype=np.bool_) if knows_level is None else knows_level
    n_days = usage.shape[1]
    forecast = forecast[:, :SCENARIO_DAYS]
    noise = _level_noise(usage[:, -_LEVEL_DAYS:])
    weeks = []
    for age in range(1, len(SCENARIO_WEIGHTS) + 1):
        first = n_days - SCENARIO_DAYS * age
        raw = np.full(forecast.shape, np.nan)
        there = np.arange(max(first, 0), first + SCENARIO_DAYS)
        raw[:, there - first] = usage[:, there]
        measured = np.isfinite(raw)
        with np.errstate(invalid="ignore", divide="ignore"):
            level = np.where(measured, raw, 0).sum(axis=(1, 2))
            move = np.log(np.where(measured, forecast, 0).sum(axis=(1, 2)) / level)
            threshold = np.where(believed, 0.0, np.maximum(_CLEAR_CHANGE * noise, _SMALLEST_CORRECTION))
            clear = np.abs(move) > threshold
            factor = np.exp(np.where(clear & np.isfinite(move), move, 0.0))
        factor = np.clip(factor, 1 / _LARGEST_CORRECTION, _LARGEST_CORRECTION)
        weeks.append(np.where(measured, raw * factor[:, None, None], forecast))
    return np.stack(weeks, axis=1)


def dilate(curves: AnyFloats) -> Floats:
    """Each slot at the highest of itself and its two neighbours; the slot axis is the last.

    An evening peak half an hour early is the same peak.
    """
    out = np.array(curves, dtype=np.float64)
    out[..., 1:] = np.maximum(out[..., 1:], curves[..., :-1])
    out[..., :-1] = np.maximum(out[..., :-1], curves[..., 1:])
    return out


def _level_noise(usage: AnyFloats) -> Floats:
    """How unsteadily a service's level changes from one week to the next, in logarithms: (n_series,).

    The upper quartile of the deviations from the median change, as standard deviations of a normal distribution: a
    steady trend is no noise, and neither is a step of the last days.
    """
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # unmeasured or idle series
        level = np.log(np.nanmean(usage, axis=2, dtype=np.float64))  # (n_series, n_days)
        level = np.where(np.isfinite(level), level, np.nan)
        change = level[:, 7:] - level[:, :-7]
        deviation = np.abs(change - nan_quantile(change, 0.5)[:, None])
        noise = nan_quantile(deviation, 0.75) / 1.15
    return np.where(np.isfinite(noise), np.maximum(noise, _LEAST_LEVEL_NOISE), 1.0)
