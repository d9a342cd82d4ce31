"""Public forecasting libraries on the daily peaks of the backtest: reported beside us, not counted as baselines.

    statsforecast  AutoETS with weekly season per series (Nixtla), 0.95 from its 90 % interval
    lightgbm       one global quantile model per resource on lagged peaks

Both see the same peaks before the same midnights. They are slow, so they run on every seventh origin only.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from base.arrays import Floats

_LAGS = (1, 2, 3, 4, 5, 6, 7, 14)
_QUANTILES = (0.5, 0.95)


def auto_ets(peaks: Floats) -> Floats:
    """Next day's quantiles from past daily peaks (n_series, n_days), NaN = no data: (n_series, n_quantiles)."""
    from statsforecast.models import AutoETS

    forecasts = np.zeros((len(peaks), len(_QUANTILES)))
    for row, series in enumerate(filled_peaks(peaks)):
        if series.max() <= 0:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = AutoETS(season_length=7, model="ZNZ")
            answer = model.forecast(y=series / series.max(), h=1, level=[90])
        forecasts[row] = np.array([answer["mean"][0], answer["hi-90"][0]]) * series.max()
    return np.maximum(forecasts, 0.0)


def light_gbm(peaks: Floats) -> Floats:
    """The same from gradient-boosted trees over all series, each divided by its median."""
    from lightgbm import LGBMRegressor

    filled = filled_peaks(peaks)
    scale = np.maximum(np.median(filled, axis=1), 1e-12)
    scaled = filled / scale[:, None]
    n_days = scaled.shape[1]
    days = range(max(_LAGS), n_days)
    features = np.concatenate([_features(scaled[:, :day], day) for day in days])
    target = np.concatenate([scaled[:, day] for day in days])
    answers = []
    for quantile in _QUANTILES:
        model = LGBMRegressor(
            objective="quantile", alpha=quantile, n_estimators=150, num_leaves=15, verbose=-1, n_jobs=1
        )
        model.fit(features, target)
        answers.append(np.asarray(model.predict(_features(scaled, n_days))) * scale)
    return np.asarray(np.maximum(np.stack(answers, axis=1), 0.0))


def _features(scaled: Floats, day: int) -> Floats:
    """What is known at midnight of `day`: (n_series, n_features)."""
    lags = [scaled[:, -lag] for lag in _LAGS]
    windows = [f(scaled[:, -n:], axis=1) for n in (7, 14, 28) for f in (np.median, np.max, np.std)]
    return np.stack([*lags, *windows, np.full(len(scaled), day % 7)], axis=1)


def filled_peaks(peaks: Floats) -> Floats:
    """Missing days take the day before, leading ones the first known."""
    out = peaks.copy()
    for day in range(1, out.shape[1]):
        out[:, day] = np.where(np.isfinite(out[:, day]), out[:, day], out[:, day - 1])
    for day in range(out.shape[1] - 2, -1, -1):
        out[:, day] = np.where(np.isfinite(out[:, day]), out[:, day], out[:, day + 1])
    return np.asarray(np.nan_to_num(out))


RIVALS: dict[str, Callable[[Floats], Floats]] = {"statsforecast AutoETS": auto_ets, "lightgbm": light_gbm}
