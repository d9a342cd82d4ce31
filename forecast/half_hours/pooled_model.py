"""One quantile model of half hours for all series: a line through the features, and trees for what the line misses.

Everything is counted in a series' own unit from what is usual of the half hour (`midnight.py`). The line is fitted to
absolute errors; the trees then see its forecast beside the features. Winners of forecasting contests pool in this way
(M5: Makridakis, Spiliotis & Assimakopoulos 2022, "M5 accuracy competition", International Journal of Forecasting 38);
what one series has just been through helps to forecast the others, and a service of a week gets its curve from them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from base.one_thread import one_thread
from forecast.calendar import SLOTS_PER_DAY, Days, DayType
from forecast.half_hours.features import table
from forecast.half_hours.groups import SeriesGroups, group_moves
from forecast.half_hours.midnight import KNOWN_DAYS, SeriesUnits, midnight_of
from forecast.model import HALF_HOUR_LEVELS
from forecast.predictors.base import filled_days

LOW, MIDDLE, HIGH = 0.1, 0.5, 0.9

_ROWS = 24_000
"""(series, half hour) pairs that are learnt from, however many series there are: they bound the cost of a night."""
_ROWS_OF_SHAPE = 6_000
"""Others, that the shape between and beyond the three quantiles is read from."""
_FEWEST_ROWS = 1_000
"""25 leaves of a tree: with fewer, there is little that it could tell apart."""
_TARGET_DAYS = 28
_FEWEST_DAYS = _DAYS_BEFORE = 7
_DAYS_OF_ANY_KIND = 14
"""A shorter history has seen one weekend: what it says of workdays is learnt from workdays alone."""
_HALF_HOURS_A_SERIES = 6
"""Drawn of a series on a day: the half hours of one day are much alike, more series tell more."""

_ITERATIONS, _ITERATIONS_ASIDE = 60, 40
_LEAVES, _ROWS_OF_A_LEAF = 31, 40
_BINS = 64
_LARGEST = 20.0
"""In units: the line follows what came from further away no more than this."""
_LARGEST_FEATURE = 20.0
"""A month of 5 % a day lies 14 units from what is usual: the line must see it."""
_LINE_STEPS, _LINE_PENALTY, _SMALLEST_ERROR = 8, 1e-3, 0.05
_SMALLEST_SIDE = 1e-3
"""In units, of the distance from the middle to a side: errors are divided by it."""
_SERIES_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class PooledModel:
    """What was learnt; it looks at any series whose past is known.

    line   : (n_features + 1,) the last one is the constant
    trees  : of the quantiles LOW, MIDDLE and HIGH, for what the line misses
    shape  : (n_shape,) errors as shares of the side that they are on, ascending: -1 = at LOW, 1 = at HIGH
    """

    line: Floats32
    trees: tuple[HistGradientBoostingRegressor, ...]
    shape: Floats

    def quantiles(
        self, usage: AnyFloats, days: Days, target: Days, groups: SeriesGroups, levels: tuple[float, ...]
    ) -> Floats32:
        """Quantiles of each half hour of the day after the history: (n_series, 48, n_levels) base units, ascending.

        NaN for a series without any measurement in the last 28 days, which are all that is looked at.

        usage  : (n_series, n_days, 48) NaN = not measured
        target : the coming day (length 1)
        """
        recent = usage[:, -KNOWN_DAYS:]
        known = filled_days(recent)
        days = days.take(slice(-KNOWN_DAYS, None))
        unit = SeriesUnits.of(known).on(len(days))
        safe = np.where(unit > 0, unit, 1.0)  # what was never used stays at 0 units of 0
        moves = group_moves(known, safe, groups)
        at = np.quantile(self.shape, levels)  # (n_levels,)
        result = np.empty((len(known), SLOTS_PER_DAY, len(levels)), dtype=np.float32)
        for part in _parts(len(known)):
            rows = np.arange(part.start, part.stop)
            midnight = midnight_of(known[rows], safe[rows], days, target, groups.resource[rows], moves.take(rows))
            features = table(midnight).reshape(len(rows) * SLOTS_PER_DAY, -1)
            straight = _straight(features) @ self.line
            seen = np.column_stack([features, straight])
            with one_thread():
                low, middle, high = (straight + one.predict(seen) for one in self.trees)
            side = np.where(
                at >= 0,
                np.maximum(high - middle, _SMALLEST_SIDE)[:, None],
                np.maximum(middle - low, _SMALLEST_SIDE)[:, None],
            )
            error = (middle[:, None] + at * side).reshape(len(rows), SLOTS_PER_DAY, -1)
            result[part] = (midnight.usual[..., None] + error) * unit[rows, None, None]
        result = np.sort(np.maximum(result, 0.0), axis=-1)
        result[~np.isfinite(recent).any(axis=(1, 2))] = np.nan
        return result


def quantiles_after(usage: AnyFloats, days: Days, target: Days, groups: SeriesGroups) -> Floats32 | None:
    """`PooledModel.quantiles` at HALF_HOUR_LEVELS by a model of this very history; None where it is too short."""
    model = learn(usage, days, target, groups)
    return None if model is None else model.quantiles(usage, days, target, groups, HALF_HOUR_LEVELS)


def learn(
    usage: AnyFloats, days: Days, target: Days, groups: SeriesGroups, *, random_state: int = 0
) -> PooledModel | None:
    """Learn from the days of a history that have some days before them; None where there are too few.

    usage  : (n_series, n_days, 48) NaN = not measured
    target : the day that will be asked for (length 1)
    """
    rows = _drawn_rows(usage, days, target, groups, np.random.default_rng(random_state))
    if rows is None:
        return None
    features, error = rows
    n_shape = min(_ROWS_OF_SHAPE, len(error) // 5)
    shape_rows, kept = slice(0, n_shape), slice(n_shape, None)
    line = _line(_straight(features[kept]), np.clip(error[kept], -_LARGEST, _LARGEST))
    straight = _straight(features) @ line
    seen, left = np.column_stack([features, straight]), error - straight
    trees = tuple(_trees(level, random_state) for level in (LOW, MIDDLE, HIGH))
    with one_thread():
        for one in trees:
            one.fit(seen[kept], left[kept])
        found = [one.predict(seen[shape_rows]) for one in trees]
    return PooledModel(line, trees, _shape(left[shape_rows], found))


def _parts(n_series: int) -> list[slice]:
    """Some series at a time: their tables are as large as all the rest of a fit."""
    return [slice(start, min(start + _SERIES_AT_ONCE, n_series)) for start in range(0, n_series, _SERIES_AT_ONCE)]


def _trees(quantile: float, random_state: int) -> HistGradientBoostingRegressor:
    in_the_middle = quantile == MIDDLE
    return HistGradientBoostingRegressor(
        loss="quantile",
        quantile=quantile,
        max_iter=_ITERATIONS if in_the_middle else _ITERATIONS_ASIDE,
        learning_rate=0.1,
        max_leaf_nodes=_LEAVES,
        min_samples_leaf=_ROWS_OF_A_LEAF,
        max_bins=_BINS,
        early_stopping=False,
        random_state=random_state,
    )


def _shape(left: Floats, sides: list[Floats]) -> Floats:
    """Where errors of rows that were not learnt from lie between the three quantiles, (n_rows,) ascending."""
    low, middle, high = sides
    error = left - middle
    side = np.where(error > 0, high - middle, middle - low)
    return np.sort(error / np.maximum(side, _SMALLEST_SIDE))


def _drawn_rows(
    usage: AnyFloats, days: Days, target: Days, groups: SeriesGroups, rng: np.random.Generator
) -> tuple[Floats32, Floats] | None:
    """Features and distance from the usual of half hours drawn evenly from series and days, in random order."""
    usage, days = usage[:, -(_TARGET_DAYS + KNOWN_DAYS) :], days.take(slice(-(_TARGET_DAYS + KNOWN_DAYS), None))
    n_days = usage.shape[1]
    if n_days < _FEWEST_DAYS:
        return None
    first = min(_DAYS_BEFORE, n_days // 2)
    targets = list(range(max(first, n_days - _TARGET_DAYS), n_days))
    if n_days < _DAYS_OF_ANY_KIND:
        is_like = (days.day_type != DayType.WORKDAY) == (target.day_type[0] != DayType.WORKDAY)
        targets = [day for day in targets if is_like[day]] or targets
    was_measured: Bools = np.any(np.isfinite(usage), axis=2)  # (n_series, n_days)
    per_day = max(1, (_ROWS + _ROWS_OF_SHAPE) // (max(len(targets), 1) * _HALF_HOURS_A_SERIES))
    features, errors = [], []
    known = np.concatenate([filled_days(usage[part]).astype(usage.dtype) for part in _parts(len(usage))])
    unit_before = SeriesUnits.of(known)
    for day in targets:
        before, unit = known[:, :day], unit_before.on(day)
        usable = np.flatnonzero((unit > 0) & was_measured[:, day])
        if not len(usable):
            continue
        safe = np.where(unit > 0, unit, 1.0)
        moves = group_moves(before, safe, groups)
        rows: Ints = np.sort(rng.choice(usable, min(per_day, len(usable)), replace=False))
        that_day = days.take(slice(day, day + 1))
        midnight = midnight_of(
            before[rows], safe[rows], days.take(slice(day)), that_day, groups.resource[rows], moves.take(rows)
        )
        n_slots = min(SLOTS_PER_DAY, max(_HALF_HOURS_A_SERIES, per_day * _HALF_HOURS_A_SERIES // len(rows)))
        slots = rng.permuted(np.tile(np.arange(SLOTS_PER_DAY), (len(rows), 1)), axis=1)[:, :n_slots]
        series = np.arange(len(rows))[:, None]
        came = usage[rows[:, None], day, slots] / safe[rows, None]
        measured: Bools = np.isfinite(came)
        features.append(table(midnight)[series, slots][measured])
        errors.append((came - midnight.usual[series, slots])[measured])
    if sum(map(len, errors)) < _FEWEST_ROWS:
        return None
    error = np.concatenate(errors).astype(np.float64)
    order = rng.permutation(len(error))
    return np.concatenate(features)[order], error[order]


def _straight(features: Floats32) -> Floats32:
    """What the line sees: features near zero as they are, and a constant. (n_rows, n_features + 1)"""
    near = np.clip(features, -_LARGEST_FEATURE, _LARGEST_FEATURE)
    return np.column_stack([near, np.ones(len(features), dtype=np.float32)])


def _line(features: Floats32, error: Floats) -> Floats32:
    """Weights of least absolute error, by least squares that weigh each row by its last error: (n_columns,)."""
    importance = np.ones(len(error), dtype=np.float32)
    line = np.zeros(features.shape[1])
    for _ in range(_LINE_STEPS):
        weighted = features * importance[:, None]
        gram = (weighted.T @ features).astype(np.float64)
        shrink = _LINE_PENALTY * np.trace(gram) / len(gram) * np.eye(len(gram))
        line = np.linalg.solve(gram + shrink, weighted.T @ error)
        importance = (1 / np.maximum(np.abs(error - features @ line), _SMALLEST_ERROR)).astype(np.float32)
    return line.astype(np.float32)
