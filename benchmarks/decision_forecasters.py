"""Half-hour curves of the coming day as quantiles: what each forecaster says at a midnight, from the days before it.

    seasonal naive  the same day of last week, with the quantiles of its own errors
    AutoETS         statsforecast on the hourly means of 14 days, season 24 (it takes no season above 24)
    LightGBM        one boosted quantile model for each quantile, over all series and resources
    ridge           one linear model of the same lags for each resource, with the quantiles of each series' errors

The curves of our own model are read from it in `model_curves`. All of them see the same history.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.model import HALF_HOUR_LEVELS, PeakModel

QUANTILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
OURS, NAIVE = "forecast", "seasonal naive"
WEEK = 7
FEWEST_DAYS = 2 * WEEK
"""A history needs this many days, so that a week of targets has a week of lags before it."""

_ETS_DAYS, _TARGET_DAYS, _ERROR_DAYS = 14, 21, 28
_TREE_ROWS = 20_000
_RIDGE_PENALTY = 1e-3

Forecaster = Callable[[Floats, Ints, Ints], Floats]
"""(n_series, n_days, 48) without gaps, (n_series,) resource, (n_days + 1,) weekday -> (n_series, 48, n_quantiles)."""


def model_curves(model: PeakModel) -> tuple[Floats, Floats]:
    """Return mean and variance of the mean pod of each service on the first day: (n_services, n_resources, 48) each.

    A service's residuals hold what the whole cluster does wrong as well, so this is all of a single pod's error. On a
    node the common part adds up faster than variances do: there the model adds `cluster_std`.
    """
    replicas = np.maximum(model.reference_replicas, 1.0)[:, None, None]
    variance = model.shared_std.astype(np.float64) ** 2 + model.own_std.astype(np.float64) ** 2 / replicas
    return model.usage_dated[:, :, 0].astype(np.float64), np.asarray(np.nan_to_num(variance))


def model_quantiles(model: PeakModel) -> Floats:
    """Return the published quantiles of the first day between their levels: (n_services, n_resources, 48, n_quantiles).

    Between two levels a quantile is interpolated linearly.
    """
    levels = np.eye(len(HALF_HOUR_LEVELS))
    between = np.stack([np.interp(QUANTILES, HALF_HOUR_LEVELS, level) for level in levels])
    return np.moveaxis(np.nan_to_num(model.half_hour_quantiles(model.first_day)), 2, -1) @ between


def seasonal_naive(past: Floats, _resource: Ints, _weekday: Ints) -> Floats:
    """Last week's curve with the quantiles of what such a copy missed before."""
    errors = (past[:, WEEK:] - past[:, :-WEEK])[:, -_ERROR_DAYS:]
    return _with_errors(past[:, -WEEK], errors)


def daily_copy(past: Floats, _resource: Ints, _weekday: Ints) -> Floats:
    """Yesterday's curve for every quantile: GIFT-Eval's seasonal naive, by which BOOM divides."""
    return np.repeat(past[:, -1, :, None], len(QUANTILES), axis=-1)


def auto_ets(past: Floats, _resource: Ints, _weekday: Ints) -> Floats:
    """AutoETS for each series by itself. What the library raises ends the benchmark, and so does an answer of NaN."""
    from statsforecast.models import AutoETS

    hourly = past[:, -_ETS_DAYS:].reshape(len(past), -1, 2).mean(axis=2)
    levels = [round(200 * q - 100) for q in QUANTILES if q > 0.5]
    result = np.empty((len(past), SLOTS_PER_DAY, len(QUANTILES)))
    for row, series in enumerate(hourly):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = AutoETS(season_length=24, model="ZNZ").forecast(y=series, h=24, level=levels)
        columns = np.stack([_column(answer, quantile) for quantile in QUANTILES], axis=1)  # (24, n_quantiles)
        result[row] = np.repeat(columns, SLOTS_PER_DAY // 24, axis=0)
    if n_unknown := int((~np.isfinite(result)).any(axis=(1, 2)).sum()):
        raise ValueError(f"AutoETS answered NaN for {n_unknown} of {len(past)} series")
    return _ordered(result)


def _column(answer: dict[str, Floats], quantile: float) -> Floats:
    """One quantile out of the symmetric intervals that statsforecast returns."""
    if quantile == 0.5:
        return answer["mean"]
    side = "hi" if quantile > 0.5 else "lo"
    return answer[f"{side}-{round(abs(200 * quantile - 100))}"]


def light_gbm(past: Floats, resource: Ints, weekday: Ints) -> Floats:
    """Boosted quantile trees over all series, half hours and resources together."""
    from lightgbm import LGBMRegressor

    days = _target_days(past)
    features = np.concatenate([_tree_features(past, day, resource, weekday) for day in days])
    target = np.concatenate([past[:, day].ravel() for day in days])
    rows = np.random.default_rng(0).permutation(len(target))[:_TREE_ROWS]
    ahead = _tree_features(past, past.shape[1], resource, weekday)
    columns = []
    for quantile in QUANTILES:
        model = LGBMRegressor(
            objective="quantile", alpha=quantile, n_estimators=80, num_leaves=15, verbose=-1, n_jobs=1
        )
        model.fit(features[rows], target[rows])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # scikit-learn misses feature names that arrays never had
            columns.append(np.asarray(model.predict(ahead)).reshape(len(past), SLOTS_PER_DAY))
    return _ordered(np.stack(columns, axis=-1))


def ridge(past: Floats, resource: Ints, _weekday: Ints) -> Floats:
    """Linear regression on lags with an L2 penalty, one for each resource, fitted anew at every midnight."""
    result = np.zeros((len(past), SLOTS_PER_DAY, len(QUANTILES)))
    for kind in np.unique(resource):
        rows = np.flatnonzero(resource == kind)
        days = _target_days(past)
        features = np.stack([_lags(past[rows], day) for day in days], axis=1)  # (n_rows, n_days, 48, n_features)
        target = past[rows][:, days.start : days.stop]
        flat = features.reshape(-1, features.shape[-1])
        gram = flat.T @ flat / len(flat) + _RIDGE_PENALTY * np.eye(flat.shape[1])
        weights = np.linalg.solve(gram, flat.T @ target.ravel() / len(flat))
        result[rows] = _with_errors(_lags(past[rows], past.shape[1]) @ weights, target - features @ weights)
    return result


def filled(usage: AnyFloats) -> Floats:
    """Copy of (n_series, n_days, 48) in which a gap takes the same half hour of the day before; leading ones are 0."""
    out = np.array(usage, dtype=np.float64)
    for day in range(1, out.shape[1]):
        out[:, day] = np.where(np.isfinite(out[:, day]), out[:, day], out[:, day - 1])
    return np.asarray(np.nan_to_num(out))


def error_quantiles(errors: Floats) -> Floats:
    """Quantiles of past errors by half hour: (n_series, n_days, 48) -> (n_series, 48, n_quantiles).

    A half hour borrows the errors of its two neighbours on either side, round midnight.
    """
    around = np.concatenate([np.roll(errors, shift, axis=2) for shift in range(-2, 3)], axis=1)
    return np.moveaxis(np.quantile(around, QUANTILES, axis=1), 0, -1)


def _with_errors(curve: Floats, errors: Floats) -> Floats:
    return _ordered(curve[..., None] + error_quantiles(errors))


def _ordered(quantiles: Floats) -> Floats:
    return np.asarray(np.sort(np.maximum(quantiles, 0.0), axis=-1))


def _target_days(past: Floats) -> range:
    return range(max(WEEK, past.shape[1] - _TARGET_DAYS), past.shape[1])


def _lags(past: Floats, day: int) -> Floats:
    """What is known at midnight of `day` about each of its half hours: (n_series, 48, n_features)."""
    week = past[:, day - WEEK : day]  # (n_series, 7, 48)
    yesterday, last_week = week[:, -1], week[:, 0]
    by_slot = [week[:, -lag] for lag in range(1, WEEK + 1)]
    by_slot += [np.roll(curve, shift, axis=1) for curve in (yesterday, last_week) for shift in (-1, 1)]
    by_slot += [week.mean(axis=1), week.max(axis=1), week.std(axis=1)]
    levels = [yesterday.mean(axis=1), yesterday.max(axis=1), yesterday[:, -4:].mean(axis=1), week.mean(axis=(1, 2))]
    by_slot += [np.repeat(level[:, None], SLOTS_PER_DAY, axis=1) for level in levels]
    return np.stack([*by_slot, np.ones_like(yesterday)], axis=-1)


def _tree_features(past: Floats, day: int, resource: Ints, weekday: Ints) -> Floats:
    """(n_series * 48, n_features)"""
    lags = _lags(past, day)
    shape = lags.shape[:2]
    others = [
        np.broadcast_to(np.arange(SLOTS_PER_DAY), shape),
        np.full(shape, weekday[day]),
        np.broadcast_to(resource[:, None], shape),
    ]
    joined = np.concatenate([lags, np.stack(others, axis=-1)], axis=-1)
    return joined.reshape(-1, joined.shape[-1])
