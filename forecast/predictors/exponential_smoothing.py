"""Exponential smoothing with a damped trend of the daily level, times the usual shape of the day.

Smoothing 48 slots a day one by one follows a new level in weeks; a level per day follows it in days.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from forecast.calendar import Days, DayType
from forecast.predictors.base import Predictor, filled_days, nan_mean
from forecast.predictors.day_type_mean import DayTypeMeanPredictor

_SMALLEST_LEVEL = 1e-3


class ExponentialSmoothingPredictor(Predictor):
    """Damped multiplicative trend (Gardner & McKenzie 1985; Hyndman & Athanasopoulos, "Forecasting", sec. 8.2).

    On the log of the daily mean m_d without its weekday factor, for each pair of gains:

        l_d = a m_d + (1 - a)(l + phi b),   b_d = c (l_d - l) + (1 - c) phi b,   forecast h days ahead = l + sum phi^i b

    and per series the pair with the least squared one-day errors, recent ones counting more.

    gains   : (level gain a, trend gain c) tried
    damping : phi
    """

    name: ClassVar[str] = "exponential_smoothing"

    def __init__(
        self,
        *,
        gains: tuple[tuple[float, float], ...] = ((0.15, 0.0), (0.4, 0.0), (0.4, 0.15), (0.7, 0.0), (0.7, 0.3)),
        damping: float = 0.93,
    ) -> None:
        self.gains = gains
        self.damping = damping

    def _fit(self, usage: AnyFloats, days: Days) -> None:
        filled = filled_days(usage)
        mean = filled.mean(axis=2)  # (n_series, n_days)
        usual = mean.mean(axis=1)
        self.unit_ = np.where(usual > 0, usual, 1.0)
        logs = np.log(np.maximum(mean / self.unit_[:, None], _SMALLEST_LEVEL))
        weekday = _as_weekday(days)
        self.season_ = _weekday_factors(logs, weekday)  # (n_series, 7) logs
        self.level_, self.trend_ = self._smooth(logs - self.season_[:, weekday])
        # The shape of a day is its share of the day's mean: fit the mean of shapes, so that old levels do not matter.
        filled /= np.maximum(mean, _SMALLEST_LEVEL * self.unit_[:, None])[:, :, None]
        self.shapes_ = DayTypeMeanPredictor().fit(filled, days)
        self.empty_ = nan_mean(usage).max(axis=1) <= 0

    def _smooth(self, logs: Floats) -> tuple[Floats, Floats]:
        n_series, n_days = logs.shape
        best_error = np.full(n_series, np.inf)
        best_level, best_trend = logs[:, 0].copy(), np.zeros(n_series)
        for level_gain, trend_gain in self.gains:
            level, trend, error = logs[:, :3].mean(axis=1), np.zeros(n_series), np.zeros(n_series)
            for day in range(n_days):
                expected = level + self.damping * trend
                miss = logs[:, day] - expected
                error = 0.95 * error + miss * miss
                smoothed = expected + level_gain * miss
                trend = trend_gain * (smoothed - level) + (1 - trend_gain) * self.damping * trend
                level = smoothed
            better = error < best_error
            best_error = np.where(better, error, best_error)
            best_level, best_trend = np.where(better, level, best_level), np.where(better, trend, best_trend)
        return best_level, best_trend

    def _predict_curve(self, horizon: Days) -> Floats:
        ahead = np.cumsum(self.damping ** np.arange(1, len(horizon) + 1))  # (n_horizon_days,)
        log_level = self.level_[:, None] + self.trend_[:, None] * ahead + self.season_[:, _as_weekday(horizon)]
        level = self.unit_[:, None] * np.exp(np.clip(log_level, -10.0, 5.0))
        level[self.empty_] = 0.0
        return level[:, :, None] * self.shapes_.predict_curve(horizon)


def _as_weekday(days: Days) -> Ints:
    """A public holiday is smoothed as a Sunday."""
    return np.where(days.day_type == DayType.HOLIDAY, 6, days.weekday)


def _weekday_factors(logs: Floats, weekday: Ints) -> Floats:
    """(n_series, 7) mean of log level against the week around it, shrunk towards 0 while few weeks are known."""
    n_series, n_days = logs.shape
    factors = np.zeros((n_series, 7))
    if n_days < 14:
        return factors
    cumulated = np.concatenate([np.zeros((n_series, 1)), np.cumsum(logs, axis=1)], axis=1)
    centre = np.clip(np.arange(n_days), 3, n_days - 4)
    around = (cumulated[:, centre + 4] - cumulated[:, centre - 3]) / 7
    inner = slice(3, n_days - 3)  # the edges have no whole week around them
    deviation, weekday = (logs - around)[:, inner], weekday[inner]
    for day in range(7):
        same = weekday == day
        if same.any():
            factors[:, day] = np.median(deviation[:, same], axis=1) * same.sum() / (same.sum() + 1)
    return factors
