"""Simple forecasts ("experts") of a day's peak at 0.5 and 0.95: quantiles of past peaks under many windows and weights.

Everything is computed from days before the origin. `forecast/peaks.py` learns how to combine them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import Floats, Ints
from forecast.calendar import Days, DayType
from forecast.peak_statistics import DailyStatistics
from forecast.quantiles import SortedRows, nan_quantile, sort_rows

LONGEST_WINDOW = 60
SMALLEST_RATIO = 1e-4
# One freak day (a backup at 10,000 times the usual traffic) must not rule the forecasts of the next weeks. A real
# level shift passes: the cap follows the median of the last three days.
_OUTLIER_CAP = 4.0
_ABOVE_MAXIMUM = 1.15
_BEYOND_RECORD = 1.25
"""Rules that reckon upwards end here, as a multiple of the highest peak of 28 days."""
_NORMAL_95 = 1.645

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
    "above_7_days",
    "above_28_days",
    "weekly_level",
    "random_walk",
    "exponential_smoothing",
)


@dataclass(frozen=True, slots=True)
class KnownDays:
    """The last days before an origin of some series, oldest first.

    rows    : (n_rows,) the series
    origin  : days [0, origin) of the statistics are known
    days    : the calendar of the window
    raw     : (n_rows, n_window) daily peaks, NaN where not measured; at most LONGEST_WINDOW
    peaks   : the same, freak days capped
    filled  : the same, missing days filled with the last known one
    sorted  : `peaks` in ascending order
    scale   : (n_rows,) 0.9 quantile of all daily peaks so far; 0 = never used anything
    record  : (n_rows,) highest peak of the last 28 days, freak days capped
    logs    : (n_rows, <= 28) log(filled / scale) of the last 28 days
    """

    rows: Ints
    origin: int
    days: Days
    raw: Floats
    peaks: Floats
    filled: Floats
    sorted: SortedRows
    scale: Floats
    record: Floats
    logs: Floats

    @property
    def age(self) -> Floats:
        """(n_window,) days between a known day and the last known one."""
        return np.arange(self.peaks.shape[1])[::-1].astype(np.float64)

    @property
    def unit(self) -> Floats:
        """(n_rows,) the scale, 1 where it is 0."""
        return np.where(self.scale > 0, self.scale, 1.0)


def known_days(statistics: DailyStatistics, rows: Ints, origin: int) -> KnownDays:
    """rows: (n_rows,) series; days [0, origin) are known, at least one."""
    first = max(0, origin - LONGEST_WINDOW)
    raw = statistics.peak[rows, first:origin]
    peaks = _without_freaks(raw)
    filled = carried_forward(peaks)
    ascending = sort_rows(peaks)
    scale = np.nan_to_num(nan_quantile(statistics.peak[rows, :origin], 0.9))
    return KnownDays(
        rows=rows,
        origin=origin,
        days=statistics.days.take(slice(first, origin)),
        raw=raw,
        peaks=peaks,
        filled=filled,
        sorted=ascending,
        scale=scale,
        record=np.nan_to_num(np.fmax.reduce(peaks[:, -28:], axis=1)),
        logs=np.log(np.maximum(filled[:, -28:] / np.where(scale > 0, scale, 1.0)[:, None], SMALLEST_RATIO)),
    )


def expert_forecasts(statistics: DailyStatistics, known: KnownDays, target: Days, lead: int) -> Floats:
    """What every expert says of one day: (n_rows, n_experts, 2), at 0.5 and 0.95, in the unit of the series.

    target : the day to forecast (length 1)
    lead   : 1 for the day after the last known one
    """
    peaks, ascending, age = known.peaks, known.sorted, known.age
    weekday, free = weekday_and_free(known.days)
    target_weekday, target_free = weekday_and_free(target)
    same_weekday = np.where(weekday == target_weekday[0], 1.0, 0.15)
    same_free = np.where(free == target_free[0], 1.0, 0.15)
    pair = (0.5, 0.95)
    last, week = days_ago(known.filled, 1), days_ago(known.filled, days_since_weekday(lead))
    mean = last_known(statistics.mean[known.rows, : known.origin])
    std = last_known(statistics.std[known.rows, : known.origin])
    of_7_days = ascending.quantiles((age < 7).astype(np.float64), (0.5, 0.75, 1.0))
    of_28_days = np.nan_to_num(np.stack([nan_quantile(peaks[:, -28:], q) for q in (0.5, 0.7, 0.95)], axis=1))
    limit = _BEYOND_RECORD * known.record
    mean_28 = weighted_mean(peaks, np.where(age < 28, 1.0, 0.0))
    by_name: dict[str, Floats] = {
        "last_day": np.stack([last, last], axis=1),
        "same_weekday": np.stack([week, np.maximum(week, last)], axis=1),
        "seven_days": of_7_days[:, [0, 2]],
        "quantiles_14_days": _plain_quantiles(peaks[:, -14:]),
        "quantiles_28_days": of_28_days[:, [0, 2]],
        "quantiles_60_days": _plain_quantiles(peaks),
        "decayed_1_day": ascending.quantiles(0.5**age, pair),
        "decayed_2_days": ascending.quantiles(0.5 ** (age / 2), pair),
        "decayed_3_days": ascending.quantiles(0.5 ** (age / 3), pair),
        "decayed_7_days": ascending.quantiles(0.5 ** (age / 7), pair),
        "decayed_20_days": ascending.quantiles(0.5 ** (age / 20), pair),
        "decayed_same_weekday": ascending.quantiles(0.5 ** (age / 20) * same_weekday, pair),
        "decayed_same_day_type": ascending.quantiles(0.5 ** (age / 14) * same_free, pair),
        "n_sigma": np.minimum(np.stack([mean + 2 * std, mean + 5 * std], axis=1), limit[:, None]),
        "mean_28_days": np.stack([mean_28, known.record], axis=1),
        "above_7_days": np.stack([of_7_days[:, 1], np.minimum(_ABOVE_MAXIMUM * of_7_days[:, 2], limit)], axis=1),
        "above_28_days": np.stack([of_28_days[:, 1], _ABOVE_MAXIMUM * known.record], axis=1),
        "weekly_level": np.minimum(_weekly_level(known, weekday, target_weekday[0]), limit[:, None]),
        "random_walk": np.minimum(_random_walk(known, last), limit[:, None]),
        "exponential_smoothing": np.minimum(statistics.smoothed.ahead(known.rows, known.origin, lead), limit[:, None]),
    }
    return np.stack([by_name[name] for name in EXPERTS], axis=1)


def _weekly_level(known: KnownDays, weekday: Ints, target: int) -> Floats:
    """Level of the last days times the factor of the weekday, both learned as logs: (n_rows, 2).

    A weekday's factor is its mean deviation over 28 days, shrunk by one day.
    """
    logs = known.logs
    of_day = weekday[-logs.shape[1] :]
    deviation = logs - logs.mean(axis=1, keepdims=True)
    factors = np.stack(
        [deviation[:, of_day == day].sum(axis=1) / ((of_day == day).sum() + 1) for day in range(7)], axis=1
    )
    decay = 0.5 ** (np.arange(logs.shape[1])[::-1] / 3)
    without_season = logs - factors[:, of_day]
    level = without_season @ (decay / decay.sum())
    mid = np.exp(level + factors[:, target]) * known.unit
    return np.stack([mid, mid * np.exp(_NORMAL_95 * without_season.std(axis=1))], axis=1) * _has_used(known)


def _random_walk(known: KnownDays, last: Floats) -> Floats:
    """The last peak times the 0.5 and 0.95 quantile of its day-to-day ratios in 28 days: (n_rows, 2)."""
    steps = np.diff(known.logs, axis=1)
    if steps.shape[1] < 4:
        return np.stack([last, last], axis=1)
    ratios = np.exp(np.stack([nan_quantile(steps, q) for q in (0.5, 0.95)], axis=1))
    return last[:, None] * ratios


def _has_used(known: KnownDays) -> Floats:
    """0 for series that never used anything, else 1: (n_rows, 1)."""
    return (known.scale > 0).astype(np.float64)[:, None]


def _without_freaks(raw: Floats) -> Floats:
    """Peaks capped at a multiple of what the last 28 days or the last 3 days call usual."""
    usual = np.fmax(nan_quantile(raw[:, -28:], 0.9), nan_quantile(raw[:, -3:], 0.5))
    cap = np.where(np.nan_to_num(usual) > 0, _OUTLIER_CAP * usual, np.inf)
    return np.minimum(raw, cap[:, None])


def carried_forward(values: Floats) -> Floats:
    """Missing values take the last known one, leading ones the first known one, unknown rows 0."""
    index = np.where(np.isfinite(values), np.arange(values.shape[1]), 0)
    np.maximum.accumulate(index, axis=1, out=index)
    filled = np.take_along_axis(values, index, axis=1)
    first_known = np.isfinite(values).argmax(axis=1)
    start = np.nan_to_num(values[np.arange(len(values)), first_known])
    return np.where(np.isfinite(filled), filled, start[:, None])


def last_known(values: Floats) -> Floats:
    """The last measured value of the last week, (n_rows,); 0 without any."""
    return carried_forward(values[:, -7:])[:, -1]


def days_ago(values: Floats, days: int) -> Floats:
    """Return the value `days` before the origin, (n_rows,); the oldest one if the window is shorter."""
    return values[:, -min(days, values.shape[1])]


def days_since_weekday(lead: int) -> int:
    """Days from the last known day of the target's weekday to the origin."""
    return 1 + (-lead) % 7


def _plain_quantiles(values: Floats) -> Floats:
    return np.nan_to_num(np.stack([nan_quantile(values, 0.5), nan_quantile(values, 0.95)], axis=1))


def weekday_and_free(days: Days) -> tuple[Ints, Ints]:
    """A public holiday counts as a Sunday; free = not a workday."""
    holiday = days.day_type == DayType.HOLIDAY
    return np.where(holiday, 6, days.weekday), (days.day_type != DayType.WORKDAY).astype(np.int64)


def weighted_mean(values: Floats, weights: Floats) -> Floats:
    """weights: (n_columns,); 0 where nothing with a weight is known."""
    mass = np.isfinite(values) * weights
    total = mass.sum(axis=1)
    return np.asarray((np.nan_to_num(values) * mass).sum(axis=1) / np.where(total > 0, total, 1.0), dtype=np.float64)
