"""The week that could come, as last week really went: what placement weighs.

A mean curve hides which services surprise together, and no list of standard deviations says it either. A raw week of
all services at once keeps every correlation between them. Placing by a smooth mean left twice as many hot slots
as placing by last week's raw series on servers with bursts; the weeks before, weighed in, made it worse as well. What
helps is to look half an hour to both sides (`dilate`): see docs/placement.md for the figures.

A raw week knows nothing of a trend or of what changed since. It is brought to the forecast's level where the difference
is clearly more than what the service's level moves by itself from week to week; correcting less clear differences made
placement worse.
"""

from __future__ import annotations

import warnings

import numpy as np

from forecast.arrays import AnyFloats, Floats

__all__ = ["SCENARIO_DAYS", "SCENARIO_WEIGHTS", "dilate", "scenario_weeks"]

SCENARIO_DAYS = 7

SCENARIO_WEIGHTS = (1.0,)
"""Weight of each week, last week first."""

_LEVEL_DAYS = 28
_LEAST_LEVEL_NOISE = 0.05
_CLEAR_CHANGE = 2.5
"""Standard deviations of the level's own movement."""
_SMALLEST_CORRECTION = np.log(1.15)
_LARGEST_CORRECTION = 4.0


def scenario_weeks(usage: AnyFloats, forecast: AnyFloats) -> Floats:
    """The last weeks at today's level: (n_series, n_scenarios, 7, 48), day 0 = the day after history ends.

    usage    : (n_series, n_days, 48) NaN = not measured; such slots are taken from the forecast
    forecast : (n_series, >= 7, 48) expected usage of the days to come
    """
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
            clear = np.abs(move) > np.maximum(_CLEAR_CHANGE * noise, _SMALLEST_CORRECTION)
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
    """How much a service's week differs from the week before, in logarithms: (n_series,)."""
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # unmeasured or idle series
        level = np.log(np.nanmean(usage, axis=2))  # (n_series, n_days)
        level = np.where(np.isfinite(level), level, np.nan)
        change = level[:, 7:] - level[:, :-7]
        noise = np.sqrt(np.nanmean(change**2, axis=1))
    return np.where(np.isfinite(noise), np.maximum(noise, _LEAST_LEVEL_NOISE), 1.0)
