"""LightGBM quantiles of half hours, pooled over all series of a resource; the maximum is calibrated on past days."""

from __future__ import annotations

import numpy as np

from base.arrays import Floats
from benchmarks.challengers.known_series import QUANTILES, KnownSeries
from forecast.calendar import SLOTS_PER_DAY
from forecast.predictors.base import filled_days

_LAGS = (1, 2, 3, 7, 14)
_CALIBRATION_DAYS = 7
_MAX_ROWS = 120_000


def half_hour_trees(known: KnownSeries) -> Floats:
    """Next day's peak quantiles: (n_series, 2)."""
    from lightgbm import LGBMRegressor

    peaks = known.peaks
    forecasts = np.zeros((len(peaks), len(QUANTILES)))
    for rows in known.by_resource():
        filled = filled_days(known.usage[rows])
        scale = np.maximum(filled.mean(axis=(1, 2)), 1e-12)
        scaled = filled / scale[:, None, None]
        n_days = scaled.shape[1]
        weekday = [int(day) for day in (*known.days.weekday, known.target.weekday[0])]
        lags = [lag for lag in _LAGS if lag < n_days - _CALIBRATION_DAYS - 1]  # two days to learn from are left
        days = range(max(lags), n_days - _CALIBRATION_DAYS)
        features = np.concatenate([_features(scaled[:, :day], lags, weekday[day]) for day in days])
        target = np.concatenate([scaled[:, day].reshape(-1) for day in days])
        rng = np.random.default_rng(0)
        drawn = rng.choice(len(target), min(len(target), _MAX_ROWS), replace=False)
        for index, quantile in enumerate(QUANTILES):
            trees = LGBMRegressor(
                objective="quantile", alpha=quantile, n_estimators=120, num_leaves=31, verbose=-1, n_jobs=1
            )
            trees.fit(features[drawn], target[drawn])
            highest = np.stack(
                [
                    np.asarray(trees.predict(_features(scaled[:, :day], lags, weekday[day])))
                    .reshape(-1, SLOTS_PER_DAY)
                    .max(axis=1)
                    for day in range(n_days - _CALIBRATION_DAYS, n_days + 1)
                ],
                axis=1,
            )  # (n_rows, calibration days and the target)
            highest = np.maximum(highest, 1e-6)
            came = peaks[rows, -_CALIBRATION_DAYS:] / scale[:, None] / highest[:, :-1]
            forecasts[rows, index] = highest[:, -1] * np.nanquantile(came, quantile) * scale
    return forecasts


def _features(scaled: Floats, lags: list[int], weekday: int) -> Floats:
    """What is known before a day of that weekday, a row per half hour: (n_series * 48, n_features)."""
    shape = (len(scaled), SLOTS_PER_DAY)
    past = [scaled[:, -lag] for lag in lags]
    levels = [scaled[:, -days:].mean(axis=(1, 2)) for days in (1, 7)] + [scaled[:, -7:].max(axis=(1, 2))]
    evening = scaled[:, -1, -8:].mean(axis=1)
    columns = [*past, *(np.broadcast_to(level[:, None], shape) for level in (*levels, evening))]
    time = [np.broadcast_to(np.arange(SLOTS_PER_DAY, dtype=np.float64), shape), np.full(shape, float(weekday))]
    return np.stack([*columns, *time], axis=-1).reshape(-1, len(columns) + len(time))
