"""Mean profile per half hour and kind of day, recent days weighing more."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.calendar import Days
from forecast.predictors.base import Predictor, nan_means


class DayTypeMeanPredictor(Predictor):
    """The calm one: averages accidents away.

    half_life_days : age at which a day counts half
    max_days       : older days are not looked at
    """

    name: ClassVar[str] = "day_type_mean"

    def __init__(self, *, half_life_days: float = 10.0, max_days: int = 42) -> None:
        self.half_life_days = half_life_days
        self.max_days = max_days

    def _fit(self, usage: AnyFloats, days: Days) -> None:
        days = days.take(slice(-self.max_days, None))
        recent = usage[:, -self.max_days :]
        fading = 0.5 ** (np.arange(len(days))[::-1] / self.half_life_days)
        kinds = kinds_of_day(days)
        means = nan_means(recent, np.stack([*(fading * kinship(days, *kind) for kind in kinds), fading]))
        self.profiles_ = {kind: means[:, index] for index, kind in enumerate(kinds)}
        self.any_day_ = means[:, -1]

    def _predict_curve(self, horizon: Days) -> Floats:
        kinds = zip(horizon.day_type.tolist(), horizon.weekday.tolist(), strict=True)
        return np.stack([self.profiles_.get(kind, self.any_day_) for kind in kinds], axis=1)


def kinship(days: Days, day_type: int, weekday: int) -> Floats:
    """Return how much each day counts for such a day, (n_days,): same weekday 1, same type 0.4, any other 0.02."""
    same_type = days.day_type == day_type
    return np.where(same_type & (days.weekday == weekday), 1.0, np.where(same_type, 0.4, 0.02))


def kinds_of_day(days: Days) -> list[tuple[int, int]]:
    """Every (day type, weekday) worth a profile: all weekdays as they are usually, and what the history holds."""
    usual = {(max(0, weekday - 4), weekday) for weekday in range(7)}
    seen: set[tuple[int, int]] = set(zip(days.day_type.tolist(), days.weekday.tolist(), strict=True))
    return sorted(usual | seen)
