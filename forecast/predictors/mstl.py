"""MSTL: daily and weekly season and trend by repeated loess (Bandara, Hyndman & Bergmeir 2021), from statsmodels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from statsmodels.tsa.seasonal import MSTL

from base.arrays import AnyFloats, Floats
from forecast.calendar import SLOTS_PER_DAY, Days
from forecast.predictors.base import Predictor, filled_days

_SLOTS_PER_STEP = 2
_STEPS_PER_DAY = SLOTS_PER_DAY // _SLOTS_PER_STEP

_LOESS = {"seasonal_deg": 0, "trend_jump": 8, "low_pass_jump": 8}
"""Smooth curves are fitted at every eighth step and interpolated, as in R's stl: seven times faster, 0.1 % apart."""


class MstlPredictor(Predictor):
    """Ten milliseconds per series and fit on 28 days of hours: run on representative curves only.

    max_days : older days are not looked at
    damping  : how much of the trend's last daily slope is kept from one day to the next
    """

    name: ClassVar[str] = "mstl"
    expensive: ClassVar[bool] = True

    def __init__(self, *, max_days: int = 28, damping: float = 0.8) -> None:
        self.max_days = max_days
        self.damping = damping

    def _fit(self, usage: AnyFloats, days: Days) -> None:
        recent = filled_days(usage)[:, -self.max_days :]
        hours = recent.reshape(len(recent), -1, _SLOTS_PER_STEP).mean(axis=2)  # (n_series, n_days * 24)
        mean = hours.mean(axis=1)
        self.unit_ = np.where(mean > 0, mean, 1.0)
        self.n_days_ = recent.shape[1]
        self.level_ = np.zeros(len(recent))
        self.slope_ = np.zeros(len(recent))
        self.season_ = np.zeros((len(recent), 7, _STEPS_PER_DAY))  # the season of the last seven days
        for row, series in enumerate(hours / self.unit_[:, None]):
            self._decompose(row, series)
        # Two half hours of one hour differ: give the hour's season the usual ratio between them back.
        pairs = recent.mean(axis=1).reshape(len(recent), _STEPS_PER_DAY, _SLOTS_PER_STEP)
        centre = pairs.mean(axis=2, keepdims=True)
        self.within_hour_ = np.where(centre > 0, pairs / np.where(centre > 0, centre, 1.0), 1.0)

    def _decompose(self, row: int, series: Floats) -> None:
        if self.n_days_ < 3:
            self.level_[row] = series.mean()
            return
        periods = [_STEPS_PER_DAY, 7 * _STEPS_PER_DAY] if self.n_days_ >= 15 else [_STEPS_PER_DAY]
        parts = MSTL(series, periods=periods, iterate=1, stl_kwargs=_LOESS).fit()
        season = np.asarray(parts.seasonal).reshape(len(series), -1).sum(axis=1)
        trend = np.asarray(parts.trend)
        week = season.reshape(-1, _STEPS_PER_DAY)[-7:]
        self.season_[row] = week[np.arange(-7, 0) % len(week)]
        self.level_[row] = trend[-_STEPS_PER_DAY:].mean()
        self.slope_[row] = self.level_[row] - trend[-2 * _STEPS_PER_DAY : -_STEPS_PER_DAY].mean()

    def _predict_curve(self, horizon: Days) -> Floats:
        n_days = len(horizon)
        ahead = np.cumsum(self.damping ** np.arange(1, n_days + 1))
        level = self.level_[:, None] + self.slope_[:, None] * ahead  # (n_series, n_horizon_days)
        hours = level[:, :, None] + self.season_[:, np.arange(n_days) % 7]
        slots = np.maximum(hours, 0.0)[..., None] * self.within_hour_[:, None]  # (..., 24, 2)
        return np.asarray(self.unit_[:, None, None] * slots.reshape(len(level), n_days, SLOTS_PER_DAY))
