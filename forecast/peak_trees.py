"""The trees of `forecast/peaks.py`: the scale-free numbers that they learn from, and gradient boosting for
quantiles.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from base.arrays import Floats, Ints
from forecast.calendar import Days
from forecast.peak_experts import (
    EXPERTS,
    SMALLEST_RATIO,
    KnownDays,
    days_ago,
    days_since_weekday,
    last_known,
    weekday_and_free,
    weighted_mean,
)
from forecast.peak_statistics import DailyStatistics
from forecast.quantiles import nan_quantile

FEATURES = (
    *("log_day_2", "log_day_3", "log_week_2", "log_mean_1", "log_std_1", "log_high_1", "log_evening_1", "log_mean_7"),
    *("spread_28", "spread_7", "step_1", "step_7", "log_max", "log_min", "days_since_high", "high_share"),
    *("high_week_1", "high_week_2", "high_week_4", "above_scale_share", "log_weekday_mean", "log_decayed_mean"),
    *("log_max_ever", "peak_slot", "peak_slot_spread", "weekday", "day_type", "resource", "market"),
    *("log_scale_to_median", "days_known", "lead", "move_evening", "move_mean", "move_peak", "move_week", "size"),
)

RELATIVE_FEATURES = (
    *(f"{name}_{level}_to_blend" for name in EXPERTS for level in ("mid", "high")),
    *("blend_to_scale", "spread"),
)

_LARGEST_LOG = 8.0


def describe(statistics: DailyStatistics, known: KnownDays, experts: Floats, target: Days, lead: int) -> Floats:
    """What is known before one target day, (n_rows, n_features) in the order of FEATURES.

    experts : (n_rows, n_experts, 2) their forecasts of that day
    target  : the day to forecast (length 1)
    lead    : 1 for the day after the last known one
    """
    rows, origin, unit, age = known.rows, known.origin, known.unit, known.age
    n_rows = len(rows)

    def log_ratio(values: Floats) -> Floats:
        return np.log(np.maximum(np.nan_to_num(values) / unit, SMALLEST_RATIO))

    def last_week(values: Floats) -> Floats:
        return np.nan_to_num(nan_quantile(values[rows, max(0, origin - 7) : origin], 0.5))

    weekday, _ = weekday_and_free(known.days)
    target_weekday, _ = weekday_and_free(target)
    days_back = days_since_weekday(lead)
    recent = known.peaks[:, -28:]
    logs = np.log(np.maximum(recent / unit[:, None], SMALLEST_RATIO))
    median = experts[:, EXPERTS.index("quantiles_28_days"), 0]
    is_high = np.nan_to_num(known.raw[:, -28:]) > 2 * median[:, None]
    since_high = np.where(is_high.any(axis=1), is_high[:, ::-1].argmax(axis=1), 28)
    slots = statistics.peak_slot[rows, max(0, origin - 14) : origin]
    evening, mean = last_known(statistics.evening[rows, :origin]), last_known(statistics.mean[rows, :origin])
    mean_7 = _mean(statistics.mean[rows, max(0, origin - 7) : origin])
    mean_28 = _mean(statistics.mean[rows, max(0, origin - 28) : origin])
    last = days_ago(known.filled, 1)
    columns = [
        log_ratio(days_ago(known.filled, 2)),
        log_ratio(days_ago(known.filled, 3)),
        log_ratio(days_ago(known.filled, days_back + 7)),
        log_ratio(mean),
        log_ratio(last_known(statistics.std[rows, :origin])),
        log_ratio(last_known(statistics.high[rows, :origin])),
        log_ratio(evening),
        log_ratio(mean_7),
        _std(logs),
        _std(logs[:, -7:]),
        _mean(np.abs(np.diff(logs, axis=1))),
        _mean(np.abs(logs[:, 7:] - logs[:, :-7])) if logs.shape[1] > 7 else np.zeros(n_rows),
        log_ratio(known.record),
        log_ratio(np.fmin.reduce(recent, axis=1)),
        since_high.astype(float),
        is_high.mean(axis=1),
        days_ago(is_high.astype(float), days_back),
        days_ago(is_high.astype(float), days_back + 7),
        days_ago(is_high.astype(float), days_back + 21),
        (np.nan_to_num(known.raw[:, -28:]) > unit[:, None]).mean(axis=1),
        log_ratio(weighted_mean(known.peaks, np.where((weekday == target_weekday[0]) & (age < 28), 1.0, 0.0))),
        log_ratio(weighted_mean(known.peaks, 0.5 ** (age / 3))),
        log_ratio(nan_quantile(statistics.peak[rows, :origin], 1.0)),
        nan_quantile(slots, 0.5),
        _std(slots),
        np.full(n_rows, float(target_weekday[0])),
        np.full(n_rows, float(target.day_type[0])),
        statistics.resource[rows].astype(float),
        statistics.market[rows, origin - 1],
        np.log(unit / np.maximum(median, SMALLEST_RATIO * unit)),
        np.minimum(np.isfinite(known.raw).sum(axis=1), 28).astype(float),
        np.full(n_rows, float(lead)),
        log_ratio(evening) - log_ratio(last_week(statistics.evening)),
        log_ratio(mean) - log_ratio(last_week(statistics.mean)),
        log_ratio(last) - log_ratio(last_week(statistics.peak)),
        log_ratio(mean_7) - log_ratio(mean_28),
        _size(statistics, rows, origin),
    ]
    return np.stack(columns, axis=1)


def relative_features(experts: Floats, blend: Floats, unit: Floats, spread: Floats) -> Floats:
    """The experts as seen from their blend, (n_rows, n_features) in the order of RELATIVE_FEATURES.

    experts : (n_rows, n_experts, 2)
    blend   : (n_rows,) > 0
    unit    : (n_rows,) > 0, what the series' peaks usually are
    spread  : (n_rows,) `peaks.log_spread`
    """
    smallest = SMALLEST_RATIO * unit
    from_blend = np.log(np.maximum(experts, smallest[:, None, None]) / blend[:, None, None])
    return np.concatenate(
        [
            np.clip(from_blend, -_LARGEST_LOG, _LARGEST_LOG).reshape(len(experts), -1),
            np.log(np.maximum(blend, smallest) / unit)[:, None],
            spread[:, None],
        ],
        axis=1,
    )


def _size(statistics: DailyStatistics, rows: Ints, origin: int) -> Floats:
    """Log of the mean of the last week to the median of all series of the group: (n_rows,)."""
    mean = _mean(statistics.mean[:, max(0, origin - 7) : origin])
    typical = np.zeros_like(mean)
    for group in np.unique(statistics.resource):
        members = statistics.resource == group
        used = mean[members & (mean > 0)]
        typical[members] = np.median(used) if len(used) else 0.0
    ratio = np.where(typical > 0, mean / np.where(typical > 0, typical, 1.0), 1.0)[rows]
    return np.clip(np.log(np.maximum(ratio, SMALLEST_RATIO)), -_LARGEST_LOG, _LARGEST_LOG)


def _mean(values: Floats) -> Floats:
    count = np.isfinite(values).sum(axis=1)
    return np.asarray(np.nansum(values, axis=1) / np.maximum(count, 1), dtype=np.float64)


def _std(values: Floats) -> Floats:
    centred = values - _mean(values)[:, None]
    return np.sqrt(_mean(centred * centred))


# Gradient boosting for quantiles: scikit-learn's, with a quicker quantile of each leaf.
#
# A tree for a quantile ends with the weighted quantile of every leaf's residuals. scikit-learn takes that with a
# function for all array libraries, in which a fit of few rows spends four tenths of its time; this one gives the same
# values.


class QuantileTrees(HistGradientBoostingRegressor):
    """As HistGradientBoostingRegressor(loss="quantile").

    A release of scikit-learn that asks for its loss in another way loses the time, not the result.
    """

    def _get_loss(self, sample_weight: Floats | None) -> Any:
        loss = super()._get_loss(sample_weight)
        if sample_weight is not None:
            loss.fit_intercept_only = partial(_intercept, self.quantile)
        return loss


def weighted_quantile(values: Floats, weights: Floats, quantile: float) -> np.float64:
    """The lowest value below or at which lies that share of the weights ("inverted_cdf" of numpy.quantile).

    values, weights : (n,) n > 0, no NaN
    """
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    at = int(np.searchsorted(below, quantile * below[-1]))
    lowest: np.float64 = values[order[min(at, len(order) - 1)]]  # a sum may round to less than its parts
    return lowest


def _intercept(quantile: float, y_true: Floats, sample_weight: Floats) -> np.float64:
    """scikit-learn calls it by these names."""
    return weighted_quantile(y_true, sample_weight, quantile)
