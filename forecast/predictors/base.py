"""The contract of a predictor: from past half hours of many series to the curves of the days ahead.

A new predictor is one file in this folder with one subclass of `Predictor`: `forecast.predictors.discover` finds it,
the contract tests check it, and `forecast/selection.py` decides for which services it is used.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from base.arrays import AnyFloats, Floats
from base.errors import InputError
from forecast.calendar import SLOTS_PER_DAY, Days


class Predictor(BaseEstimator):
    """Base of all predictors; scikit-learn's conventions: the constructor stores, `fit` learns names ending in `_`.

    Series may have any unit: multiplying a history multiplies the forecast. A series without any sample gets zeros.

    name      : short name in reports and weights
    expensive : too slow for every series; evaluated on representative curves
    pooled    : learns from all series at once, so a series' forecast depends on its neighbours
    """

    name: ClassVar[str]
    expensive: ClassVar[bool] = False
    pooled: ClassVar[bool] = False

    def fit(self, usage: AnyFloats, days: Days) -> Self:
        """Learn from whole days, oldest first.

        usage : (n_series, n_days, 48) half-hour means >= 0, NaN = not measured; not modified
        days  : the calendar of these days
        """
        if usage.ndim != 3 or usage.shape[2] != SLOTS_PER_DAY or usage.shape[1] != len(days) or usage.shape[1] == 0:
            raise InputError(
                f"usage has shape {usage.shape} and {len(days)} days are described: it must be "
                f"(series, days, {SLOTS_PER_DAY}) with at least one day, each described once"
            )
        self.n_series_ = usage.shape[0]
        if self.n_series_ > 0:
            self._fit(usage, days)
        return self

    def predict_curve(self, horizon: Days) -> Floats:
        """Expected half-hour means of the days that follow the history: (n_series, n_horizon_days, 48), >= 0."""
        if self.n_series_ == 0 or len(horizon) == 0:
            return np.zeros((self.n_series_, len(horizon), SLOTS_PER_DAY))
        curve = self._predict_curve(horizon)
        return np.where(np.isfinite(curve) & (curve > 0), curve, 0.0)

    def predict_quantiles(self, horizon: Days, levels: tuple[float, ...]) -> Floats | None:
        """Quantiles of each half hour of the days ahead: (n_series, n_horizon_days, 48, n_levels), >= 0, ascending.

        They are of single half hours, not of the day's peak. None = this predictor says nothing about the spread.

        levels : probabilities above 0 and below 1, ascending
        """
        if not (np.diff([0.0, *levels, 1.0]) > 0).all():
            raise InputError(f"levels are {levels}: they must be above 0 and below 1, ascending")
        if self.n_series_ == 0 or len(horizon) == 0:
            return np.zeros((self.n_series_, len(horizon), SLOTS_PER_DAY, len(levels)))
        quantiles = self._predict_quantiles(horizon, levels)
        if quantiles is None:
            return None
        return np.sort(np.where(np.isfinite(quantiles) & (quantiles > 0), quantiles, 0.0), axis=-1)

    @abstractmethod
    def _fit(self, usage: AnyFloats, days: Days) -> None:
        """Learn; the arguments have been checked."""

    @abstractmethod
    def _predict_curve(self, horizon: Days) -> Floats:
        """What `predict_curve` promises, before the clean-up of what is not a number."""

    def _predict_quantiles(self, horizon: Days, levels: tuple[float, ...]) -> Floats | None:
        """What `predict_quantiles` promises, before the clean-up; a predictor that says nothing keeps this one."""
        return None


def nan_mean(usage: AnyFloats, weights: Floats | None = None) -> Floats:
    """Weighted mean over days: (n_series, n_days, 48) and (n_days,) -> (n_series, 48).

    A slot that was measured on no day takes the series' mean over all slots; a series without samples is 0.
    """
    return nan_means(usage, (np.ones(usage.shape[1]) if weights is None else weights)[None])[:, 0]


def nan_means(usage: AnyFloats, weights: Floats) -> Floats:
    """`nan_mean` for several weightings: (n_series, n_days, 48) and (n_weightings, n_days) -> (n_series, n_weightings,
    48). The gaps are looked for once.
    """
    known = np.isfinite(usage)
    if known.all():
        mass = np.asarray(weights.sum(axis=1)[None, :, None])
        total = np.matmul(weights, usage)
    else:
        mass = np.matmul(weights, known.astype(np.float64))
        total = np.matmul(weights, np.where(known, usage, 0.0))  # (n_series, n_weightings, 48)
    all_mass = np.broadcast_to(mass, total.shape).sum(axis=2)
    overall = total.sum(axis=2) / np.where(all_mass > 0, all_mass, 1.0)
    return np.asarray(np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), overall[..., None]), dtype=np.float64)


def filled_days(usage: AnyFloats) -> Floats:
    """Missing slots take the same slot of the nearest earlier day, else of the nearest later one, else the mean."""
    known = np.isfinite(usage)
    filled = usage.astype(np.float64)
    if known.all():
        return filled
    filled[~known] = np.nan
    gaps = np.flatnonzero(~known.all(axis=(0, 2)))  # days; most histories miss a few
    for day in gaps[gaps > 0].tolist():
        filled[:, day] = np.where(known[:, day], filled[:, day], filled[:, day - 1])
    for day in gaps[gaps < usage.shape[1] - 1][::-1].tolist():
        filled[:, day] = np.where(np.isnan(filled[:, day]), filled[:, day + 1], filled[:, day])
    never = np.isnan(filled[:, -1])
    if never.any():
        series, slot = np.nonzero(never)
        filled[series, :, slot] = nan_mean(usage)[series, slot][:, None]
    return filled
