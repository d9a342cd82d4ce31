"""Ridge regression on lagged log daily peaks, pooled over the series of a resource, with quantiles of its errors.

Linear regression on lags beat zero-shot foundation models on cloud data: Toner, Lee, Joosen, Singh & Asenov 2025,
"Performance of Zero-Shot Time Series Foundation Models on Cloud Data", arXiv 2502.12944.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge

from base.arrays import Floats
from benchmarks.challengers.known_series import QUANTILES, KnownSeries
from benchmarks.rivals import filled_peaks

_LAGS = (1, 2, 3, 4, 5, 6, 7, 14)
_SMALLEST_RATIO = 1e-3


def ridge_on_lags(known: KnownSeries) -> Floats:
    """Next day's peak quantiles: (n_series, 2)."""
    peaks = known.peaks
    forecasts = np.zeros((len(peaks), len(QUANTILES)))
    for rows in known.by_resource():
        filled = filled_peaks(peaks[rows])
        scale = np.maximum(np.median(filled, axis=1), 1e-12)
        logs = np.log(np.maximum(filled / scale[:, None], _SMALLEST_RATIO))
        n_days = logs.shape[1]
        days = range(max(_LAGS), n_days)
        features = np.concatenate([_features(logs[:, :day], int(known.days.weekday[day])) for day in days])
        model = Ridge(alpha=1.0).fit(features, logs[:, days.start :].T.reshape(-1))
        fitted = model.predict(features).reshape(len(days), len(rows)).T
        errors = np.where(np.isfinite(peaks[rows, days.start :]), logs[:, days.start :] - fitted, np.nan)
        mean = model.predict(_features(logs, int(known.target.weekday[0])))
        forecasts[rows] = np.exp(mean[:, None] + error_quantiles(errors)) * scale[:, None]
    return forecasts


def error_quantiles(errors: Floats) -> Floats:
    """Quantiles of what a series' log peaks were above their forecast: (n_series, 2).

    Errors are pooled after division by the spread of each series, which is pulled towards that of all by 7 days.

    errors : (n_series, n_days), NaN = not known
    """
    known = np.isfinite(errors)
    squared, count = np.where(known, errors**2, 0.0).sum(axis=1), known.sum(axis=1)
    overall = squared.sum() / max(int(count.sum()), 1)
    spread = np.sqrt((squared + 7 * overall) / (count + 7)) + 1e-9
    pooled = (errors / spread[:, None])[known]
    return np.asarray(spread[:, None] * np.quantile(pooled, QUANTILES) if len(pooled) else np.zeros((len(errors), 2)))


def _features(logs: Floats, weekday: int) -> Floats:
    """What is known before a day of that weekday: (n_series, n_features)."""
    lags = [logs[:, -lag] for lag in _LAGS]
    season = np.zeros((len(logs), 7))
    season[:, weekday] = 1.0
    return np.column_stack([*lags, logs.mean(axis=1), season])
