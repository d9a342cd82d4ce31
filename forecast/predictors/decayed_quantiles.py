"""A quantile per half hour over past days of the same kind, recent days weighing more."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.calendar import SLOTS_PER_DAY, Days
from forecast.predictors.base import Predictor, filled_days
from forecast.predictors.day_type_mean import kinds_of_day, kinship
from forecast.quantiles import SortedRows, sort_rows


class DecayedQuantilesPredictor(Predictor):
    """The robust one: a single accident does not move a median.

    quantile       : 0.5 for the curve; higher for a bound per slot
    half_life_days : age at which a day counts half
    max_days       : older days are not looked at; sorting them is what costs
    """

    name: ClassVar[str] = "decayed_quantiles"

    def __init__(self, *, quantile: float = 0.5, half_life_days: float = 5.0, max_days: int = 14) -> None:
        self.quantile = quantile
        self.half_life_days = half_life_days
        self.max_days = max_days

    def _fit(self, usage: AnyFloats, days: Days) -> None:
        self.days_ = days.take(slice(-self.max_days, None))
        by_slot = filled_days(usage)[:, -self.max_days :].transpose(0, 2, 1)  # (n_series, 48, n_days)
        self.sorted_: SortedRows = sort_rows(by_slot.reshape(-1, len(self.days_)))

    def _predict_curve(self, horizon: Days) -> Floats:
        fading = 0.5 ** (np.arange(len(self.days_))[::-1] / self.half_life_days)
        wanted = list(zip(horizon.day_type.tolist(), horizon.weekday.tolist(), strict=True))
        known = set(kinds_of_day(self.days_))
        profiles: dict[tuple[int, int], Floats] = {}
        for kind in set(wanted):
            weights = fading * kinship(self.days_, *kind) if kind in known else fading
            profiles[kind] = self.sorted_.quantiles(weights, (self.quantile,)).reshape(self.n_series_, SLOTS_PER_DAY)
        return np.stack([profiles[kind] for kind in wanted], axis=1)
