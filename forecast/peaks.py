"""Quantiles of each series' daily peak for the next days: a blend of simple rules, corrected by boosted trees.

Four steps, all learnt anew from the days before the origin:

1. experts (`peak_experts.py`): quantiles of past peaks under a score of windows and weightings;
2. blend (`expert_weights.py`): per resource the simplex weights of least pinball loss on past days;
3. aggregation (`expert_weights.py`): each series moves these weights to the experts that were right about it;
4. correction: one gradient-boosted quantile model over all series and resources predicts log(peak / blend) from
   scale-free features, so what one series has just been through helps to forecast the others.

Days after the first share a second model that knows how far ahead it looks (`lead`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from base.arrays import AnyFloats, Bools, Floats, Ints
from base.one_thread import one_thread
from forecast.calendar import Days
from forecast.expert_weights import LEARNING_DAYS, blend_weights, decayed_sums, expert_losses, series_weights
from forecast.peak_experts import EXPERTS, expert_forecasts, known_days
from forecast.peak_statistics import DailyStatistics, daily_statistics
from forecast.peak_trees import QuantileTrees, describe, relative_features

_FEWEST_DAYS_BEFORE, _DAYS_BEFORE = 3, 14
_FEWEST_ROWS_FOR_TREES = 200
_LARGEST_CORRECTION = 3.0  # of log(peak / blend): a factor 20
_ROWS_OF_HALF_TRUST = (200.0, 1500.0)  # for medians and for high quantiles
_BEYOND_RECORD = 1.2
_FEW_ROWS_WIDER = 0.3
"""Offset of high quantiles that were learnt from no rows: what few days do not show is still to come."""
_WIDEST_SPREAD = 0.5
"""The bounds of wild services need no more room than this: most of them hold by their height."""
_UNIT = 0.3
"""Offsets count by the root of this x spread. By the spread itself, a drift of all moved the wild ones too far."""
_FEW_ROWS, _MODELS_FOR_FEW_ROWS = 4_000, 3
_BINS = 64
_SHOWN_EXPERTS = ("seven_days", "quantiles_28_days", "decayed_3_days", "n_sigma")
_CHUNK = 8192
# What is tried first and kept where there is little to learn from: half the weight on the last days, half on the month.
_PRIOR_MID = {"seven_days": 1, "decayed_1_day": 1, "decayed_2_days": 1, "decayed_3_days": 2, "decayed_7_days": 1}
_PRIOR_HIGH = {"quantiles_28_days": 3, "quantiles_60_days": 1, "decayed_20_days": 3, "decayed_same_day_type": 1}


@dataclass(frozen=True, slots=True)
class PeakQuantiles:
    """Forecasts of daily peaks.

    peaks      : (n_series, n_days, n_quantiles) what to use
    components : name -> same shape, what each part would have said alone
    unit       : (n_series,) log ratio that an offset of 1 moves the highest quantile of the first day by
    offset     : (n_series,) by how many of them that was moved: less far down than asked for where the median is met
    """

    peaks: Floats
    components: dict[str, Floats]
    unit: Floats
    offset: Floats


@dataclass(frozen=True, slots=True)
class _Rows:
    """Some series on some days, with what was known before, one row each.

    series   : (n_rows,)
    group    : (n_rows,) index into groups_
    experts  : (n_rows, n_experts, 2) in the unit of the series
    features : (n_rows, n_features) those that do not depend on the blend
    scale    : (n_rows,) 0.9 quantile of the series' daily peaks so far; 0 = never used anything
    record   : (n_rows,) highest peak of the last 28 days, freak days capped
    losses   : (n_rows, n_experts, 2) of the experts on the days before the origin, older days less
    measured : (n_rows,) how many days are in them
    actual   : (n_rows,) the peak that came, NaN = not known
    """

    series: Ints
    group: Ints
    experts: Floats
    features: Floats
    scale: Floats
    record: Floats
    losses: Floats
    measured: Floats
    actual: Floats

    @property
    def unit(self) -> Floats:
        """(n_rows,) the scale, 1 where it is 0."""
        return np.where(self.scale > 0, self.scale, 1.0)


@dataclass(frozen=True, slots=True)
class _Stage:
    """What is learnt for one quantile and one range of leads.

    weights   : (n_groups, n_experts)
    trees     : boosted models whose mean is used, none where there was too little to learn from
    bin_edges : (n_features, n_edges) features enter the trees as the number of edges below them
    trust     : 0..1, how far the number of rows lets us believe the trees
    """

    weights: Floats
    trees: tuple[QuantileTrees, ...]
    bin_edges: Floats
    trust: float


class PeakForecaster(BaseEstimator):
    """Daily peak quantiles for all series of a cluster at once.

    Parameters
    ----------
    quantiles     : which quantiles, ascending; those of 0.5 and less start from the experts' medians
    training_days : how many past days serve as targets
    max_rows      : (series, day) pairs the first-day model learns from; all days of as many series
    iterations    : trees of the boosted model of the next day's median; high quantiles and later days, for which a
                    sample holds less information, get half
    correction    : share of the trees' correction that is applied to medians and to quantiles above 0.7
    random_state  : seed of the drawn rows
    """

    def __init__(
        self,
        *,
        quantiles: tuple[float, ...] = (0.5, 0.95),
        training_days: int = 60,
        max_rows: int = 24_000,
        iterations: int = 120,
        correction: tuple[float, float] = (0.8, 0.7),
        random_state: int = 0,
    ) -> None:
        self.quantiles = quantiles
        self.training_days = training_days
        self.max_rows = max_rows
        self.iterations = iterations
        self.correction = correction
        self.random_state = random_state

    def fit(self, usage: AnyFloats, resource: Ints, days: Days) -> Self:
        """Learn from the past.

        usage    : (n_series, n_days, 48) half-hour means, any unit, NaN = not measured
        resource : (n_series,) which series share blend weights, e.g. the index of the resource
        days     : (n_days,) the calendar of the history
        """
        rng = np.random.default_rng(self.random_state)
        self.groups_ = np.unique(resource)
        self.statistics_ = daily_statistics(usage, resource, days)
        self.near_ = self._learn(rng, leads=(1, 1), max_rows=self.max_rows)
        self.far_ = self._learn(rng, leads=(2, 14), max_rows=self.max_rows // 4)
        return self

    def predict(self, horizon: Days, offset: Floats | None = None) -> PeakQuantiles:
        """Peaks of the days that follow the history.

        offset : (n_series,) added to the log of quantiles above 0.7, in units of each series
                 (`forecast/online_calibration.py`); None = nothing
        """
        moved = np.zeros(len(self.statistics_.peak)) if offset is None else offset
        unit = np.ones(len(moved))
        shape = (len(self.statistics_.peak), len(horizon), len(self.quantiles))
        peaks = np.zeros(shape)
        components = {name: np.zeros(shape) for name in ("blend", "boosted_trees", *_SHOWN_EXPERTS)}
        n_known = self.statistics_.peak.shape[1]
        if n_known == 0 or shape[0] == 0:
            return PeakQuantiles(peaks, components, unit, moved)
        for start in range(0, shape[0], _CHUNK):
            series = np.arange(start, min(start + _CHUNK, shape[0]))
            group = np.searchsorted(self.groups_, self.statistics_.resource[series])
            past = decayed_sums(_losses(self.statistics_, series, n_known)[1])
            for day in range(len(horizon)):
                target = horizon.take(slice(day, day + 1))
                rows = _known_before(self.statistics_, series, group, n_known, target, day + 1, past)
                stages = self.near_ if day == 0 else self.far_
                for index, (quantile, stage) in enumerate(zip(self.quantiles, stages, strict=True)):
                    level = _level(quantile)
                    blend = _blend(rows, stage.weights, quantile)
                    factor = _correction(stage, rows, blend)
                    components["blend"][series, day, index] = blend
                    components["boosted_trees"][series, day, index] = blend * factor
                    # Trees have seen other series grow past their record; none has grown far past it overnight.
                    limit = np.maximum(_BEYOND_RECORD * 1.05**day * rows.record, blend)
                    applied = stage.trust * self.correction[level]
                    peaks[series, day, index] = np.minimum(blend * factor**applied, limit)
                    if level == 1:
                        spread = np.minimum(_log_spread(rows), _WIDEST_SPREAD)
                        of_spread = np.sqrt(_UNIT * spread)
                        wider = _FEW_ROWS_WIDER * (1 - stage.trust) * spread + moved[series] * of_spread
                        peaks[series, day, index] *= np.exp(wider)
                        if day == 0:
                            unit[series] = of_spread
                    for name in _SHOWN_EXPERTS:
                        components[name][series, day, index] = rows.experts[:, EXPERTS.index(name), level]
        ordered = np.maximum.accumulate(peaks, axis=2)
        with np.errstate(invalid="ignore", divide="ignore"):
            held = np.log(ordered[:, 0, -1] / peaks[:, 0, -1]) / unit
        return PeakQuantiles(ordered, components, unit, moved + np.where(np.isfinite(held), held, 0.0))

    def _learn(self, rng: np.random.Generator, *, leads: tuple[int, int], max_rows: int) -> list[_Stage]:
        sample = _draw(
            self.statistics_, self.groups_, rng, leads=leads, training_days=self.training_days, max_rows=max_rows
        )
        n_rows = 0 if sample is None else len(sample.actual)
        next_day = leads == (1, 1)
        n_models = _MODELS_FOR_FEW_ROWS if n_rows < _FEW_ROWS and next_day else 1
        iterations = self.iterations if next_day else self.iterations // 2
        stages = []
        for quantile in self.quantiles:
            weights = np.array([_group_weights(sample, index, quantile) for index in range(len(self.groups_))])
            trust = n_rows / (n_rows + _ROWS_OF_HALF_TRUST[_level(quantile)])
            trees, edges = self._trees(sample, weights, quantile, n_models, iterations)
            stages.append(_Stage(weights, trees, edges, trust))
        return stages

    def _trees(
        self, sample: _Rows | None, weights: Floats, quantile: float, n_models: int, iterations: int
    ) -> tuple[tuple[QuantileTrees, ...], Floats]:
        if sample is None or len(sample.actual) < _FEWEST_ROWS_FOR_TREES:
            return (), np.empty((0, 0))
        n_rows = len(sample.actual)
        blend = _usable(_blend(sample, weights, quantile), sample)
        spread = _log_spread(sample)
        target = np.log(np.maximum(sample.actual / blend, 0.01)) / spread
        # d(y / scale) = (blend / scale) spread d(target): with this weight the trees minimise the loss of y / scale.
        importance = np.clip(blend / sample.unit * spread, 0.005, 3.0)
        features = _features(sample, blend, spread)
        edges = _bin_edges(features)
        features = _binned(features, edges)
        models = []
        for member in range(n_models):
            model = QuantileTrees(
                loss="quantile",
                quantile=_aimed_at(quantile),
                learning_rate=0.06,
                max_iter=iterations if _level(quantile) == 0 else iterations // 2,
                max_leaf_nodes=16,
                min_samples_leaf=min(60, max(10, n_rows // 20)),
                # Two features of three say nearly the same: trees that see some of them differ, and cost less.
                max_features=0.3,
                early_stopping=False,
                random_state=self.random_state + member,
            )
            with one_thread():
                models.append(model.fit(features, target, sample_weight=importance))
        return tuple(models), edges


def _known_before(
    statistics: DailyStatistics,
    series: Ints,
    group: Ints,
    origin: int,
    target: Days,
    lead: int,
    past: tuple[Floats, Floats],
) -> _Rows:
    """Rows of one target day of which days [0, origin) are known. past: `losses` and `measured` of the rows."""
    known = known_days(statistics, series, origin)
    experts = expert_forecasts(statistics, known, target, lead)
    features = describe(statistics, known, experts, target, lead)
    unknown = np.full(len(series), np.nan)
    return _Rows(series, group, experts, features, known.scale, known.record, *past, unknown)


def _losses(statistics: DailyStatistics, series: Ints, end: int, first: int | None = None) -> tuple[range, Floats]:
    """Losses of all experts on the days before `end`, forecast a day ahead.

    first : the first such day, LEARNING_DAYS before `end` by default; no day without any day before it
    Returns the days and (n_series, n_days, n_experts, 2).
    """
    days = range(max(1, end - LEARNING_DAYS if first is None else first), end)
    result = np.full((len(series), len(days), len(EXPERTS), 2), np.nan)
    for column, day in enumerate(days):
        known = known_days(statistics, series, day)
        experts = expert_forecasts(statistics, known, statistics.days.take(slice(day, day + 1)), 1)
        for level, quantile in enumerate((0.5, 0.95)):
            result[:, column, :, level] = expert_losses(
                statistics.peak[series, day], experts[:, :, level], known.scale, quantile
            )
    return days, result


def _draw(
    statistics: DailyStatistics,
    groups: Ints,
    rng: np.random.Generator,
    *,
    leads: tuple[int, int],
    training_days: int,
    max_rows: int,
) -> _Rows | None:
    """All past days of some series; None when the history is too short or idle for any."""
    n_series, n_days = statistics.peak.shape
    # Days that were themselves forecast from little history would teach that the future is always wilder than the past.
    fewest_before = max(_FEWEST_DAYS_BEFORE, min(_DAYS_BEFORE, n_days // 2))
    targets = range(max(fewest_before + leads[0] - 1, n_days - training_days), n_days)
    if not targets or n_series == 0:
        return None
    per_day = min(n_series, max(1, max_rows // len(targets)))
    drawn = np.sort(rng.choice(n_series, per_day, replace=False)) if per_day < n_series else np.arange(n_series)
    loss_days, losses = _losses(statistics, drawn, n_days, max(1, targets.start - leads[1] + 1 - LEARNING_DAYS))
    parts: list[_Rows] = []
    for target in targets:
        lead = int(rng.integers(leads[0], leads[1] + 1))
        origin = max(fewest_before, target - lead + 1)
        measured = np.flatnonzero(np.isfinite(statistics.peak[drawn, target]))
        series = drawn[measured]
        before = losses[measured, max(0, origin - LEARNING_DAYS - loss_days.start) : origin - loss_days.start]
        group = np.searchsorted(groups, statistics.resource[series])
        target_day = statistics.days.take(slice(target, target + 1))
        rows = _known_before(statistics, series, group, origin, target_day, target - origin + 1, decayed_sums(before))
        rows = replace(rows, actual=statistics.peak[series, target])
        parts.append(_take(rows, rows.scale > 0))
    joined = _Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in _Rows.__slots__))
    return joined if len(joined.scale) else None  # else nothing but idle series, or nothing measured on any of the days


def _take(rows: _Rows, chosen: Bools) -> _Rows:
    return _Rows(*(getattr(rows, name)[chosen] for name in _Rows.__slots__))


def _bin_edges(features: Floats) -> Floats:
    """(n_features, n_edges) quantiles of each feature.

    The trees would do this themselves, but with sample weights they take four times as long to bin as to learn.
    """
    return np.quantile(features, np.linspace(0, 1, _BINS + 1)[1:-1], axis=0).T


def _binned(features: Floats, edges: Floats) -> Floats:
    codes = [np.searchsorted(edges[k], features[:, k], side="right") for k in range(features.shape[1])]
    return np.stack(codes, axis=1).astype(np.float64)


def _level(quantile: float) -> int:
    """Which of the experts' two forecasts a quantile is built from."""
    return 0 if quantile <= 0.7 else 1


def _aimed_at(quantile: float) -> float:
    """Forecasts of the future err more than those of the sample: aim a little higher to cover what was promised."""
    return quantile if _level(quantile) == 0 else quantile + 0.15 * (1 - quantile)


def _prior(quantile: float) -> Floats:
    favoured = _PRIOR_MID if _level(quantile) == 0 else _PRIOR_HIGH
    shares = np.array([0.1 + favoured.get(name, 0) for name in EXPERTS])
    return np.asarray(shares / shares.sum(), dtype=np.float64)


def _group_weights(sample: _Rows | None, group: int, quantile: float) -> Floats:
    """(n_experts,) of one group, pulled towards the prior."""
    prior = _prior(quantile)
    if sample is None:
        return prior
    forecasts = sample.experts[:, :, _level(quantile)] / sample.unit[:, None]
    actual = sample.actual / sample.unit
    members = sample.group == group
    return blend_weights(forecasts[members], actual[members], quantile, prior)


def _blend(rows: _Rows, weights: Floats, quantile: float) -> Floats:
    """(n_rows,) the experts under the weights of each series; weights: (n_groups, n_experts)."""
    level = _level(quantile)
    of_series = series_weights(rows.losses[..., level], rows.measured, weights[rows.group], quantile)
    return np.asarray(np.einsum("ne,ne->n", rows.experts[:, :, level], of_series), dtype=np.float64)


def _usable(blend: Floats, rows: _Rows) -> Floats:
    """A blend that can be divided by."""
    return np.maximum(blend, 1e-3 * rows.unit)


def _features(rows: _Rows, blend: Floats, spread: Floats) -> Floats:
    relative = relative_features(rows.experts, blend, rows.unit, spread)
    return np.concatenate([rows.features, relative], axis=1)


def _log_spread(rows: _Rows) -> Floats:
    """(n_rows,) how far a series' peaks usually lie apart, as a log ratio: corrections are learnt in this unit.

    Otherwise a service that has used the same for weeks would get the correction of the wild ones.
    """
    index = EXPERTS.index("decayed_20_days")
    mid, high = (rows.experts[:, index, level] + 0.01 * rows.scale for level in (0, 1))
    ratio = np.where(rows.scale > 0, high / np.where(mid > 0, mid, 1.0), 1.0)
    return 0.03 + np.log(np.maximum(ratio, 1.0))


def _correction(stage: _Stage, rows: _Rows, blend: Floats) -> Floats:
    if not stage.trees:
        return np.ones(len(rows.scale))
    spread = _log_spread(rows)
    with one_thread():
        features = _binned(_features(rows, _usable(blend, rows), spread), stage.bin_edges)
        correction = np.mean([model.predict(features) for model in stage.trees], axis=0)
    bounded = np.clip(correction * spread, -_LARGEST_CORRECTION, _LARGEST_CORRECTION)
    return np.asarray(np.exp(bounded), dtype=np.float64)
