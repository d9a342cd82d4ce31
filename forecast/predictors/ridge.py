"""Ridge regression on lags: one linear model of the last two weeks for all series, fitted anew each night.

Toner et al. 2025 (arXiv 2502.12944) found that online ridge regression beats foundation models on loads of a cloud.
Days after the first are forecast from the days forecast before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import ClassVar

import numpy as np

from base.arrays import AnyFloats, Floats, Floats32
from forecast.calendar import SLOTS_PER_DAY, Days
from forecast.predictors.base import Predictor, filled_days

_WEEK = 7
_WINDOW = 2 * _WEEK
_HUBER = 1.5
"""Errors beyond this many mean absolute errors pull with constant force (Huber 1964)."""
_LARGEST_RATIO = 20.0
"""Of a half hour to the series' mean: one burst must not decide the weights of all series."""


class RidgePredictor(Predictor):
    """Predicts each half hour from the same half hour of the days before, their neighbours and the levels of the week.

    penalty      : L2, relative to the mean square of a feature
    target_days  : past days that the weights are learned from
    max_series   : series that they are learned from, drawn evenly
    random_state : seed of the drawn series
    """

    name: ClassVar[str] = "ridge"
    pooled: ClassVar[bool] = True

    def __init__(
        self, *, penalty: float = 1e-3, target_days: int = 21, max_series: int = 1_000, random_state: int = 0
    ) -> None:
        self.penalty = penalty
        self.target_days = target_days
        self.max_series = max_series
        self.random_state = random_state

    def _fit(self, usage: AnyFloats, days: Days) -> None:
        recent = filled_days(usage[:, -(self.target_days + _WINDOW) :])
        self.level_ = recent[:, -2 * _WINDOW :].mean(axis=(1, 2))
        unit = np.where(self.level_ > 0, self.level_, 1.0)[:, None, None]
        scaled = np.minimum(recent / unit, _LARGEST_RATIO).astype(np.float32)
        self.weights_ = self._learn(scaled)
        missing = max(_WINDOW - scaled.shape[1], 0)  # a short history begins with copies of its first day
        self.last_days_ = np.pad(scaled[:, -_WINDOW:], ((0, 0), (missing, 0), (0, 0)), mode="edge")

    def _learn(self, scaled: Floats32) -> Floats | None:
        """(n_features,), or None where the history has less than a week of days with two weeks before them."""
        n_series, n_days, _ = scaled.shape
        chosen = np.arange(n_series)
        if n_series > self.max_series:
            chosen = np.sort(np.random.default_rng(self.random_state).choice(n_series, self.max_series, replace=False))
        if n_days < _WINDOW + _WEEK:
            return None
        examples = partial(_examples, scaled[chosen])  # made anew each time: all at once are 100 MB
        plain = self._solve(examples(), lambda features, target: np.ones(len(target)))
        limit = _HUBER * float(np.mean([np.abs(target - features @ plain).mean() for features, target in examples()]))
        if limit == 0:
            return plain
        return self._solve(
            examples(), lambda features, target: limit / np.maximum(np.abs(target - features @ plain), limit)
        )

    def _solve(
        self, examples: Iterable[tuple[Floats32, Floats32]], importance: Callable[[Floats32, Floats32], Floats]
    ) -> Floats:
        """(n_features,) of least squared error. importance: from an example to the weight of each row, (n_rows,)"""
        gram, cross = np.zeros(()), np.zeros(())
        for features, target in examples:
            weighted = features * importance(features, target)[:, None]  # (n_rows, n_features), float64
            gram, cross = gram + weighted.T @ features, cross + weighted.T @ target
        shrink = self.penalty * np.trace(gram) / len(gram) * np.eye(len(gram))
        return np.asarray(np.linalg.solve(gram + shrink, cross), dtype=np.float64)

    def _predict_curve(self, horizon: Days) -> Floats:
        known = self.last_days_
        curves = np.empty((len(known), len(horizon), SLOTS_PER_DAY), dtype=np.float32)
        for day in range(len(horizon)):
            curves[:, day] = known[:, -_WEEK] if self.weights_ is None else self._next_day(known)
            known = np.concatenate([known[:, 1:], curves[:, day, None]], axis=1)
        return np.asarray(curves * self.level_[:, None, None], dtype=np.float64)

    def _next_day(self, known: Floats32) -> Floats32:
        highest = np.minimum(2 * known.max(axis=(1, 2)), _LARGEST_RATIO)[:, None]  # a chain of forecasts stays near
        return np.clip(_lags(known) @ np.asarray(self.weights_, dtype=np.float32), 0.0, highest).astype(np.float32)


def _examples(scaled: Floats32) -> Iterator[tuple[Floats32, Floats32]]:
    """Of each day with two weeks before it: features (n_series * 48, n_features), and what came (n_series * 48,)."""
    for day in range(_WINDOW, scaled.shape[1]):
        features = _lags(scaled[:, day - _WINDOW : day])
        yield features.reshape(-1, features.shape[-1]), scaled[:, day].reshape(-1)


def _lags(known: Floats32) -> Floats32:
    """What is known at a midnight about each half hour of the day: (n_series, 48, n_features).

    known : (n_series, 14, 48) the days before
    """
    week = known[:, -_WEEK:]
    yesterday, last_week, two_weeks_ago = week[:, -1], week[:, 0], known[:, 0]
    curves = [week[:, -lag] for lag in range(1, _WEEK + 1)]
    curves += [two_weeks_ago, known[:, -_WEEK - 1]]
    for curve in (yesterday, last_week):  # half an hour before and after; a day has no neighbour beyond its ends
        curves += [np.hstack([curve[:, :1], curve[:, :-1]]), np.hstack([curve[:, 1:], curve[:, -1:]])]
    curves += [week.mean(axis=1), week.max(axis=1), known.mean(axis=1)]
    levels = [yesterday.mean(axis=1), yesterday.max(axis=1), yesterday[:, -4:].mean(axis=1), last_week.mean(axis=1)]
    levels += [week.mean(axis=(1, 2)), known.mean(axis=(1, 2))]
    curves += [np.repeat(level[:, None], SLOTS_PER_DAY, axis=1) for level in levels]
    return np.stack([*curves, np.ones_like(yesterday)], axis=-1)
