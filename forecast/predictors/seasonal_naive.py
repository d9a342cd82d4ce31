"""Seasonal naive: each day repeats the last day of its type (workday, Saturday, Sunday, holiday)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.calendar import Days
from forecast.predictors.base import Predictor, filled_days


class SeasonalNaivePredictor(Predictor):
    """Follows a new level from one day to the next; a type never seen repeats the last day."""

    name: ClassVar[str] = "seasonal_naive"

    def _fit(self, usage: AnyFloats, days: Days) -> None:
        filled = filled_days(usage)
        last_of_type = {int(kind): int(np.flatnonzero(days.day_type == kind)[-1]) for kind in np.unique(days.day_type)}
        self.last_of_type_ = {kind: filled[:, day].copy() for kind, day in last_of_type.items()}
        self.last_day_ = filled[:, -1].copy()

    def _predict_curve(self, horizon: Days) -> Floats:
        return np.stack([self.last_of_type_.get(int(kind), self.last_day_) for kind in horizon.day_type], axis=1)
