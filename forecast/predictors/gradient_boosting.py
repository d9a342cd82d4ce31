"""One gradient-boosted quantile model over all series for the level of a day, times the usual shape of the day.

Learning the level of days instead of 48 slots makes the model 48 times cheaper and lets it see every series.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from base.arrays import AnyFloats, Floats, Ints
from base.one_thread import one_thread
from forecast.calendar import SLOTS_PER_DAY, Days
from forecast.predictors.base import Predictor, filled_days
from forecast.predictors.day_type_mean import DayTypeMeanPredictor

_SMALLEST_LEVEL = 1e-3
_FEWEST_DAYS_BEFORE = 7
_FEWEST_ROWS = 200
_MAX_LEAD = 7
_SHAPES_AT_ONCE = 1024  # a pooled predictor sees all series: copies of their history would be the most memory of a fit


class GradientBoostingPredictor(Predictor):
    """Predicts log(daily mean / mean of the last week) at `quantile` from what the last days did; pooled over series.

    quantile     : of the daily level
    max_rows     : (series, day) pairs learnt from
    iterations   : trees
    random_state : seed of the drawn pairs
    """

    name: ClassVar[str] = "gradient_boosting"
    pooled: ClassVar[bool] = True

    def __init__(
        self, *, quantile: float = 0.5, max_rows: int = 8_000, iterations: int = 50, random_state: int = 0
    ) -> None:
        self.quantile = quantile
        self.max_rows = max_rows
        self.iterations = iterations
        self.random_state = random_state

    def _fit(self, usage: AnyFloats, days: Days) -> None:
        self.days_ = days
        self.mean_: Floats = np.empty(usage.shape[:2])
        self.shapes_: list[DayTypeMeanPredictor] = []
        for start in range(0, len(usage), _SHAPES_AT_ONCE):
            filled = filled_days(usage[start : start + _SHAPES_AT_ONCE])
            mean = filled.mean(axis=2)  # (n_series, n_days)
            floor = _SMALLEST_LEVEL * np.maximum(mean.mean(axis=1, keepdims=True), 1e-300)
            filled /= np.maximum(mean, floor)[:, :, None]
            self.shapes_.append(DayTypeMeanPredictor().fit(filled, days))
            self.mean_[start : start + _SHAPES_AT_ONCE] = mean
        self.trees_ = self._learn()

    def _learn(self) -> HistGradientBoostingRegressor | None:
        n_series, n_days = self.mean_.shape
        rng = np.random.default_rng(self.random_state)
        targets = range(_FEWEST_DAYS_BEFORE, n_days)
        if not targets:
            return None
        per_day = min(n_series, max(1, self.max_rows // len(targets)))
        features, moves = [], []
        for target in targets:
            lead = min(int(rng.integers(1, _MAX_LEAD + 1)), target - _FEWEST_DAYS_BEFORE + 1)
            rows = np.sort(rng.choice(n_series, per_day, replace=False)) if per_day < n_series else np.arange(n_series)
            origin = target - lead + 1
            usual = _usual(self.mean_[rows, :origin])
            rows, usual = rows[usual > 0], usual[usual > 0]
            known = self.days_.take(slice(origin))
            features.append(_features(self.mean_[rows, :origin], known, self._day(self.days_, target), lead))
            moves.append(np.log(np.maximum(self.mean_[rows, target] / usual, _SMALLEST_LEVEL)))
        target_values = np.concatenate(moves)
        if len(target_values) < _FEWEST_ROWS:
            return None
        trees = HistGradientBoostingRegressor(
            loss="quantile",
            quantile=self.quantile,
            max_iter=self.iterations,
            learning_rate=0.1,
            max_leaf_nodes=8,
            min_samples_leaf=40,
            max_bins=64,
            early_stopping=False,
            random_state=self.random_state,
        )
        with one_thread():
            return trees.fit(np.concatenate(features), target_values)

    def _predict_curve(self, horizon: Days) -> Floats:
        usual = _usual(self.mean_)
        level = np.repeat(usual[:, None], len(horizon), axis=1)  # (n_series, n_horizon_days)
        if self.trees_ is not None and self.n_series_ > 0:
            for index in range(len(horizon)):
                lead = min(index + 1, _MAX_LEAD)
                rows = _features(self.mean_, self.days_, self._day(horizon, index), lead)
                with one_thread():
                    level[:, index] *= np.exp(np.clip(self.trees_.predict(rows), -5.0, 5.0))
        curve = np.empty((self.n_series_, len(horizon), SLOTS_PER_DAY))
        for index, shapes in enumerate(self.shapes_):
            some = slice(index * _SHAPES_AT_ONCE, (index + 1) * _SHAPES_AT_ONCE)
            np.multiply(level[some, :, None], shapes.predict_curve(horizon), out=curve[some])
        return curve

    @staticmethod
    def _day(days: Days, index: int) -> tuple[int, int]:
        return int(days.weekday[index]), int(days.day_type[index])


def _usual(mean: Floats) -> Floats:
    """(n_series,) mean level of the last seven days."""
    return np.asarray(mean[:, -7:].mean(axis=1), dtype=np.float64)


def _features(mean: Floats, days: Days, target: tuple[int, int], lead: int) -> Floats:
    """mean: (n_rows, n_days before the origin). Returns scale-free numbers, (n_rows, n_features)."""
    weekday, day_type = target
    usual = _usual(mean)
    unit = np.where(usual > 0, usual, 1.0)[:, None]
    logs = np.log(np.maximum(mean[:, -28:] / unit, _SMALLEST_LEVEL))
    n_days = logs.shape[1]
    same_weekday: Ints = np.flatnonzero(days.weekday[-n_days:] == weekday)
    same_type: Ints = np.flatnonzero(days.day_type[-n_days:] == day_type)
    empty = np.zeros(len(mean))
    columns = [
        *(logs[:, -min(back, n_days)] for back in (1, 2, 3, 7)),
        logs[:, same_weekday[-1]] if len(same_weekday) else empty,
        logs[:, same_weekday].mean(axis=1) if len(same_weekday) else empty,
        logs[:, same_type].mean(axis=1) if len(same_type) else empty,
        logs[:, -3:].mean(axis=1),
        logs.mean(axis=1),
        logs.std(axis=1),
        logs[:, -7:].std(axis=1),
        np.full(len(mean), float(lead)),
        np.full(len(mean), float(day_type)),
    ]
    return np.stack(columns, axis=1)
