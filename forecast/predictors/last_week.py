"""The last week as it was: each weekday repeats the same weekday of the last seven days."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.calendar import Days
from forecast.predictors.base import Predictor, filled_days


class LastWeekPredictor(Predictor):
    """Strong and free; it knows no trend, no level shift and repeats every accident."""

    name: ClassVar[str] = "last_week"

    def _fit(self, usage: AnyFloats, days: Days) -> None:
        self.week_ = filled_days(usage)[:, -7:].copy()  # (n_series, <= 7, 48)
        self.weekday_ = days.weekday[-7:].copy()

    def _predict_curve(self, horizon: Days) -> Floats:
        last = len(self.weekday_) - 1
        source = []
        for weekday in horizon.weekday:
            same = np.flatnonzero(self.weekday_ == weekday)
            source.append(int(same[-1]) if len(same) else last)
        return np.asarray(self.week_[:, source], dtype=np.float64)
