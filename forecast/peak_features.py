"""What is known about a series before a day, as simple forecasts ("experts") and scale-free features of its peak.

Everything is computed from days before the origin. `forecast/peaks.py` learns from these numbers how to combine them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from forecast.arrays import AnyFloats, Floats, Ints
from forecast.calendar import Days, DayType
from forecast.quantiles import nan_quantile, sort_rows

LONGEST_WINDOW = 60
# One freak day (a backup at 10,000 times the usual traffic) must not rule the forecasts of the next weeks. A real
# level shift passes: the cap follows the median of the last three days.
_OUTLIER_CAP = 4.0
_SMALLEST_RATIO = 1e-4

EXPERTS = (
    "last_day",
    "same_weekday",
    "seven_days",
    "quantiles_14_days",
    "quantiles_28_days",
    "quantiles_60_days",
    "decayed_1_day",
    "decayed_2_days",
    "decayed_3_days",
    "decayed_7_days",
    "decayed_20_days",
    "decayed_same_weekday",
    "decayed_same_day_type",
    "n_sigma",
    "mean_28_days",
)
FEATURES = (
    *(f"log_{name}_{level}" for name in EXPERTS for level in ("mid", "high") if (name, level) != ("last_day", "high")),
    *("log_day_2", "log_day_3", "log_week_2", "log_mean_1", "log_std_1", "log_high_1", "log_evening_1", "log_mean_7"),
    *("spread_28", "spread_7", "step_1", "step_7", "log_max", "log_min", "days_since_high", "high_share"),
    *("high_week_1", "high_week_2", "high_week_4", "above_scale_share", "log_weekday_mean", "log_decayed_mean"),
    *("log_max_ever", "peak_slot", "peak_slot_spread", "weekday", "day_type", "resource", "market"),
    *("log_scale_to_median", "days_known", "lead"),
)


@dataclass(frozen=True, slots=True)
class DailyStatistics:
    """Each day of each series in a few numbers, all (n_series, n_days) and NaN where not measured.

    resource : (n_series,) group that shares weights, e.g. the resource index
    peak_slot: (n_series, n_days) half hour of the peak, 0..47
    market   : (n_series, n_days) median log move of the day's peak against its week, over the series of the group
    """

    days: Days
    resource: Ints
    peak: Floats
    mean: Floats
    std: Floats
    high: Floats
    evening: Floats
    peak_slot: Floats
    market: Floats


@dataclass(frozen=True, slots=True)
class PeakRows:
    """One row per described (series, target day).

    experts  : (n_rows, n_experts, 2) their forecasts at 0.5 and 0.95, in the unit of the series
    features : (n_rows, n_features) scale-free
    scale    : (n_rows,) 0.9 quantile of the series' daily peaks so far; 0 = never used anything
    record   : (n_rows,) highest peak of the last 28 days, freak days capped
    """

    experts: Floats
    features: Floats
    scale: Floats
    record: Floats


def daily_statistics(usage: AnyFloats, resource: Ints, days: Days) -> DailyStatistics:
    """usage: (n_series, n_days, 48) half-hour means, NaN = not measured; resource: (n_series,)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # days without samples are NaN on purpose
        peak = np.nanmax(usage, axis=2).astype(np.float64)
        mean: Floats = np.asarray(np.nanmean(usage, axis=2, dtype=np.float64))
        std: Floats = np.asarray(np.nanstd(usage, axis=2, dtype=np.float64))
        evening: Floats = np.asarray(np.nanmean(usage[:, :, -8:], axis=2, dtype=np.float64))
        high = nan_quantile(usage, 0.9)
        highest = np.where(np.isfinite(usage), usage, -np.inf).argmax(axis=2)
        peak_slot = np.where(np.isfinite(peak), highest, np.nan)
        market = _market(peak, resource)
    return DailyStatistics(days, resource, peak, mean, std, high, evening, peak_slot, market)


def _market(peak: Floats, resource: Ints) -> Floats:
    market = np.zeros_like(peak)
    for day in range(1, peak.shape[1]):
        usual = nan_quantile(peak[:, max(0, day - 7) : day], 0.5)
        comparable = (peak[:, day] > 0) & (usual > 0)
        move = np.log(np.where(comparable, peak[:, day] / np.where(comparable, usual, 1.0), np.nan))
        for group in np.unique(resource):
            members = resource == group
            market[members, day] = np.nan_to_num(np.nanmedian(move[members]) if members.any() else 0.0)
    return market


def describe(statistics: DailyStatistics, rows: Ints, origin: int, target: Days, lead: int) -> PeakRows:
    """Rows of experts and features for one target day.

    rows   : (n_rows,) series
    origin : days [0, origin) are known, at least one
    target : the day to forecast (length 1)
    lead   : 1 for the day after the last known one
    """
    first = max(0, origin - LONGEST_WINDOW)
    raw = statistics.peak[rows, first:origin]  # (n_rows, n_window)
    known_days = statistics.days.take(slice(first, origin))
    scale = np.nan_to_num(nan_quantile(statistics.peak[rows, :origin], 0.9))
    peaks = _without_freaks(raw)
    filled = _carried_forward(peaks)
    n_rows, n_window = peaks.shape
    age = np.arange(n_window)[::-1].astype(np.float64)  # 0 = last known day
    weekday, free = _weekday_and_free(known_days)
    target_weekday, target_free = _weekday_and_free(target)
    same_weekday = np.where(weekday == target_weekday[0], 1.0, 0.15)
    same_free = np.where(free == target_free[0], 1.0, 0.15)
    days_back = 1 + (-lead) % 7  # days from the last known day of the target's weekday to the origin

    ascending = sort_rows(peaks)
    pair = (0.5, 0.95)
    last, week = _ago(filled, 1), _ago(filled, days_back)
    last_mean, last_std = _last_known(statistics.mean[rows, :origin]), _last_known(statistics.std[rows, :origin])
    seven = ascending.quantiles((age < 7).astype(float), (0.5, 1.0))
    in_28 = np.where(age < 28, 1.0, 0.0)
    mean_28 = _weighted_mean(peaks, in_28)
    max_28 = ascending.quantiles(in_28, (1.0,))[:, 0]
    sigma = np.stack([last_mean + 2 * last_std, last_mean + 5 * last_std], axis=1)
    by_name: dict[str, Floats] = {
        "last_day": np.stack([last, last], axis=1),
        "same_weekday": np.stack([week, np.maximum(week, last)], axis=1),
        "seven_days": seven,
        "quantiles_14_days": _plain_quantiles(peaks[:, -14:]),
        "quantiles_28_days": _plain_quantiles(peaks[:, -28:]),
        "quantiles_60_days": _plain_quantiles(peaks),
        "decayed_1_day": ascending.quantiles(0.5**age, pair),
        "decayed_2_days": ascending.quantiles(0.5 ** (age / 2), pair),
        "decayed_3_days": ascending.quantiles(0.5 ** (age / 3), pair),
        "decayed_7_days": ascending.quantiles(0.5 ** (age / 7), pair),
        "decayed_20_days": ascending.quantiles(0.5 ** (age / 20), pair),
        "decayed_same_weekday": ascending.quantiles(0.5 ** (age / 20) * same_weekday, pair),
        "decayed_same_day_type": ascending.quantiles(0.5 ** (age / 14) * same_free, pair),
        "n_sigma": np.minimum(sigma, 1.25 * max_28[:, None]),
        "mean_28_days": np.stack([mean_28, max_28], axis=1),
    }
    experts = np.stack([by_name[name] for name in EXPERTS], axis=1)  # (n_rows, n_experts, 2)

    unit = np.where(scale > 0, scale, 1.0)

    def log_ratio(values: Floats) -> Floats:
        return np.log(np.maximum(np.nan_to_num(values) / unit, _SMALLEST_RATIO))

    logs = np.log(np.maximum(peaks[:, -28:] / unit[:, None], _SMALLEST_RATIO))  # (n_rows, <= 28)
    median = by_name["quantiles_28_days"][:, 0]
    is_high = np.nan_to_num(raw[:, -28:]) > 2 * median[:, None]
    since_high = np.where(is_high.any(axis=1), is_high[:, ::-1].argmax(axis=1), 28)
    slots = statistics.peak_slot[rows, max(0, origin - 14) : origin]
    columns = [log_ratio(experts[:, k, q]) for k in range(len(EXPERTS)) for q in (0, 1) if (k, q) != (0, 1)]
    columns += [
        log_ratio(_ago(filled, 2)),
        log_ratio(_ago(filled, 3)),
        log_ratio(_ago(filled, days_back + 7)),
        log_ratio(last_mean),
        log_ratio(last_std),
        log_ratio(_last_known(statistics.high[rows, :origin])),
        log_ratio(_last_known(statistics.evening[rows, :origin])),
        log_ratio(_mean(statistics.mean[rows, max(0, origin - 7) : origin])),
        _std(logs),
        _std(logs[:, -7:]),
        _mean(np.abs(np.diff(logs, axis=1))),
        _mean(np.abs(logs[:, 7:] - logs[:, :-7])) if logs.shape[1] > 7 else np.zeros(n_rows),
        log_ratio(max_28),
        log_ratio(ascending.quantiles(in_28, (0.0,))[:, 0]),
        since_high.astype(float),
        is_high.mean(axis=1),
        _ago(is_high.astype(float), days_back),
        _ago(is_high.astype(float), days_back + 7),
        _ago(is_high.astype(float), days_back + 21),
        (np.nan_to_num(raw[:, -28:]) > unit[:, None]).mean(axis=1),
        log_ratio(_weighted_mean(peaks, np.where((weekday == target_weekday[0]) & (age < 28), 1.0, 0.0))),
        log_ratio(_weighted_mean(peaks, 0.5 ** (age / 3))),
        log_ratio(nan_quantile(statistics.peak[rows, :origin], 1.0)),
        nan_quantile(slots, 0.5),
        _std(slots),
        np.full(n_rows, float(target_weekday[0])),
        np.full(n_rows, float(target.day_type[0])),
        statistics.resource[rows].astype(float),
        statistics.market[rows, origin - 1],
        np.log(unit / np.maximum(median, _SMALLEST_RATIO * unit)),
        np.minimum(np.isfinite(raw).sum(axis=1), 28).astype(float),
        np.full(n_rows, float(lead)),
    ]
    return PeakRows(experts, np.stack(columns, axis=1), scale, max_28)


def _without_freaks(raw: Floats) -> Floats:
    """Peaks capped at a multiple of what the last 28 days or the last 3 days call usual."""
    usual = np.fmax(nan_quantile(raw[:, -28:], 0.9), nan_quantile(raw[:, -3:], 0.5))
    cap = np.where(np.nan_to_num(usual) > 0, _OUTLIER_CAP * usual, np.inf)
    return np.minimum(raw, cap[:, None])


def _carried_forward(values: Floats) -> Floats:
    """Missing values take the last known one, leading ones the first known one, unknown rows 0."""
    index = np.where(np.isfinite(values), np.arange(values.shape[1]), 0)
    np.maximum.accumulate(index, axis=1, out=index)
    filled = np.take_along_axis(values, index, axis=1)
    first_known = np.isfinite(values).argmax(axis=1)
    start = np.nan_to_num(values[np.arange(len(values)), first_known])
    return np.where(np.isfinite(filled), filled, start[:, None])


def _last_known(values: Floats) -> Floats:
    return _carried_forward(values[:, -7:])[:, -1]


def _ago(values: Floats, days: int) -> Floats:
    """Return the value `days` before the origin, (n_rows,); the oldest one if the window is shorter."""
    return values[:, -min(days, values.shape[1])]


def _plain_quantiles(values: Floats) -> Floats:
    return np.nan_to_num(np.stack([nan_quantile(values, 0.5), nan_quantile(values, 0.95)], axis=1))


def _weekday_and_free(days: Days) -> tuple[Ints, Ints]:
    """A public holiday counts as a Sunday; free = not a workday."""
    holiday = days.day_type == DayType.HOLIDAY
    return np.where(holiday, 6, days.weekday), (days.day_type != DayType.WORKDAY).astype(np.int64)


def _mean(values: Floats) -> Floats:
    count = np.isfinite(values).sum(axis=1)
    return np.asarray(np.nansum(values, axis=1) / np.maximum(count, 1), dtype=np.float64)


def _weighted_mean(values: Floats, weights: Floats) -> Floats:
    """weights: (n_columns,); 0 where nothing with a weight is known."""
    mass = np.isfinite(values) * weights
    total = mass.sum(axis=1)
    return np.asarray((np.nan_to_num(values) * mass).sum(axis=1) / np.where(total > 0, total, 1.0), dtype=np.float64)


def _std(values: Floats) -> Floats:
    centred = values - _mean(values)[:, None]
    return np.sqrt(_mean(centred * centred))
