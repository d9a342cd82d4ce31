"""Which predictors speak for which series, and with what weight.

Every predictor forecasts past days it had not seen (rolling origins); per series the non-negative weights of least
weighted squared error are found, pulled towards those of its group (the resource). On the nights after the first, only
a share of the series, new ones and those whose level has moved are looked at again; the others keep their weights.
Expensive predictors see a few representative curves only; every series takes the forecast of its representative,
brought to its own level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from base.one_thread import one_thread
from base.parallel import run_all
from base.progress import Progress, silent
from forecast.calendar import SLOTS_PER_DAY, Days
from forecast.predictors import Predictor, discover
from forecast.predictors.base import filled_days, nan_mean

_ORIGINS_BACK = (1, 2, 4, 7)  # days before the end at which past forecasts start
_FEWEST_DAYS_BEFORE = 3
_DAYS_LOOKED_AT = 42  # every predictor forgets within four weeks; with 90 days a fit took half as long again
_REPRESENTATIVES = 6
_CHUNK = 1024
_JUDGED_AT_ONCE = 256  # series whose forecasts are held against what came; more are slower, outside the cache
_NEIGHBOURS = 1500
_GROUP_PULL = 0.5  # a series' own error counts this many times less than it would alone
_SMALLEST_WEIGHT = 0.03
_UNDERESTIMATE = 2.0  # a node suffers from load that was not foreseen
_PILOT_SERIES = 1200  # beyond twice this many, predictors that hardly matter to the pilot are not tried on the rest
_WORTH_A_FULL_LOOK = 0.05  # mean weight in at least one group
_DRIFT = 1.5  # ratio of two weeks' levels from which a series is looked at again


@dataclass(frozen=True, slots=True)
class Selection:
    """The blend of each series.

    predictors : in the order of the weights; copies of them are fitted
    weights    : (n_series, n_predictors) >= 0, rows sum to 1
    evaluated  : name -> number of curves it was really tried on
    selected   : (n_series,) whose weights were found anew
    """

    predictors: tuple[Predictor, ...]
    weights: Floats
    evaluated: dict[str, int]
    selected: Bools

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the predictors, in the order of the weights."""
        return tuple(predictor.name for predictor in self.predictors)

    def predict(self, usage: AnyFloats, days: Days, horizon: Days, *, progress: Progress = silent) -> Floats:
        """Blended expected curves of the days after `usage`: (n_series, n_horizon_days, 48).

        usage : (n_series, n_days, 48) of the same series in the same order, NaN = not measured
        """
        result = np.zeros((len(usage), len(horizon), SLOTS_PER_DAY))
        if len(usage) == 0:
            return result
        used = [index for index in range(len(self.predictors)) if (self.weights[:, index] > 0).any()]
        pieces = [
            (index, piece)
            for index in used
            for piece in _pieces(clone(self.predictors[index]), len(usage), np.flatnonzero(self.weights[:, index] > 0))
        ]
        all_curves = _forecast([piece for _, piece in pieces], usage, days, horizon)
        for done, ((index, piece), curves) in enumerate(zip(pieces, all_curves, strict=True), start=1):
            for start in range(0, len(piece.rows), _CHUNK):
                rows = piece.rows[start : start + _CHUNK]
                result[rows] += self.weights[rows, index, None, None] * curves[start : start + _CHUNK]
            progress("forecast", done, len(pieces))
        return result


def select_predictors(
    usage: AnyFloats,
    days: Days,
    *,
    group: Ints,
    predictors: Sequence[Predictor] | None = None,
    previous: Floats | None = None,
    reselect_share: float = 1 / 7,
    identity: Ints | None = None,
    night: int = 0,
    select_mask: Bools | None = None,
    progress: Progress = silent,
) -> Selection:
    """Find the blend of each series by rolling-origin evaluation.

    usage          : (n_series, n_days, 48) half-hour means, NaN = not measured
    days           : the calendar of these days
    group          : (n_series,) whose shared weights a series is pulled towards, e.g. its resource
    predictors     : those to choose from; by default all that are found in the folder
    previous       : (n_series, n_predictors) weights of the night before, NaN rows for series it did not know
    reselect_share : share of the known series whose turn it is tonight, given `previous`
    identity       : (n_series,) number that stays with a series from night to night; its place in the list by default
    night          : counts up by one a night, so that every series has its turn
    select_mask    : (n_series,) choose the series to look at yourself
    """
    offered = tuple(predictors) if predictors is not None else tuple(kind() for kind in discover().values())
    n_series, n_days = len(usage), len(days)
    prior = _prior(offered)
    known = previous is not None and previous.shape == (n_series, len(offered))
    weights = np.full((n_series, len(offered)), np.nan)
    if known and previous is not None:
        weights[:] = previous
    selected = (
        select_mask
        if select_mask is not None
        else _whose_turn(usage, weights, np.arange(n_series) if identity is None else identity, night, reselect_share)
    )
    rows = np.flatnonzero(selected)
    origins = [n_days - back for back in _ORIGINS_BACK if n_days - back >= _FEWEST_DAYS_BEFORE]
    evaluated = {predictor.name: 0 for predictor in offered}
    if len(rows) and origins:
        candidates = np.arange(len(offered))
        if len(rows) > 2 * _PILOT_SERIES:
            pilot = rows[np.linspace(0, len(rows) - 1, _PILOT_SERIES).astype(np.int64)]
            gram, cross = _evaluate(offered, usage, days, pilot, origins, evaluated, progress)
            mean_weights = _group_means(_solve(gram, cross, group[pilot], prior), group[pilot])
            candidates = np.flatnonzero(mean_weights.max(axis=0) >= _WORTH_A_FULL_LOOK)
        chosen = tuple(offered[index] for index in candidates)
        gram, cross = _evaluate(chosen, usage, days, rows, origins, evaluated, progress)
        found = np.zeros((len(rows), len(offered)))
        found[:, candidates] = _solve(gram, cross, group[rows], prior[candidates] + 1e-6)
        weights[rows] = found / found.sum(axis=1, keepdims=True)
    unknown = ~np.isfinite(weights).all(axis=1)
    weights[unknown] = prior
    return Selection(offered, _sparse(weights), evaluated, np.asarray(selected, dtype=np.bool_))


def _prior(predictors: tuple[Predictor, ...]) -> Floats:
    """Weights where nothing has been learnt yet: equal, the expensive predictors left out."""
    cheap = np.array([not predictor.expensive for predictor in predictors], dtype=np.float64)
    return np.asarray(cheap / cheap.sum(), dtype=np.float64)


def _group_means(weights: Floats, group: Ints) -> Floats:
    """(n_groups, n_predictors)"""
    return np.stack([weights[group == name].mean(axis=0) for name in np.unique(group)])


def _whose_turn(usage: AnyFloats, weights: Floats, identity: Ints, night: int, reselect_share: float) -> Bools:
    """New series, those whose level moved, and a share of the others that moves on every night."""
    new = np.asarray(~np.isfinite(weights).all(axis=1))
    if new.all():
        return new
    period = max(1, round(1 / max(reselect_share, 1e-6)))
    turn = identity % period == night % period
    now = nan_mean(usage[:, -7:]).mean(axis=1)
    before = nan_mean(usage[:, -14:-7]).mean(axis=1) if usage.shape[1] > 7 else now
    moved = (now > _DRIFT * before) | (before > _DRIFT * now)
    return np.asarray(new | turn | moved, dtype=np.bool_)


def _evaluate(
    offered: tuple[Predictor, ...],
    usage: AnyFloats,
    days: Days,
    rows: Ints,
    origins: list[int],
    evaluated: dict[str, int],
    progress: Progress,
) -> tuple[Floats, Floats]:
    """Per series the sums over past forecasts of w f f' and of w f y.

    Returns (n_rows, n_predictors, n_predictors) and (n_rows, n_predictors).

    The weight w grows with the load (peaks are what hurts) and doubles where the mean forecast stayed below what came.
    """
    n_rows, n_predictors = len(rows), len(offered)
    gram, cross = np.zeros((n_rows, n_predictors, n_predictors)), np.zeros((n_rows, n_predictors))
    scale = nan_mean(usage[rows]).max(axis=1)
    scale = np.where(scale > 0, scale, 1.0)
    place = np.full(len(usage), -1)
    place[rows] = np.arange(n_rows)
    for done, origin in enumerate(origins, start=1):
        horizon = days.take(slice(origin, None))
        forecasts = np.zeros((n_predictors, n_rows, len(horizon), SLOTS_PER_DAY), dtype=np.float32)
        predictors = [clone(predictor) for predictor in offered]
        pieces = [
            (index, piece)
            for index, predictor in enumerate(predictors)
            for piece in _pieces(predictor, len(usage), rows)
        ]
        all_curves = _forecast([piece for _, piece in pieces], usage[:, :origin], days.take(slice(origin)), horizon)
        for (index, piece), curves in zip(pieces, all_curves, strict=True):
            at = place[piece.rows]
            forecasts[index, at] = curves / scale[at, None, None].astype(np.float32)
        for predictor in predictors:
            count = min(_REPRESENTATIVES, n_rows) if predictor.expensive else n_rows
            evaluated[predictor.name] = max(evaluated[predictor.name], count)
        for start in range(0, n_rows, _JUDGED_AT_ONCE):
            chunk = slice(start, start + _JUDGED_AT_ONCE)
            actual = usage[rows[chunk], origin:].reshape(len(rows[chunk]), -1) / scale[chunk, None]
            tried = forecasts[:, chunk].reshape(n_predictors, len(actual), -1).astype(np.float64)
            mean = tried.mean(axis=0)
            importance = (0.2 + np.clip(np.fmax(actual, mean), 0.0, 3.0)) * np.where(actual > mean, _UNDERESTIMATE, 1.0)
            importance = np.where(np.isfinite(actual), importance, 0.0)
            weighted = (tried * importance).transpose(1, 0, 2)  # (n_chunk, n_predictors, n_slots)
            gram[chunk] += weighted @ tried.transpose(1, 2, 0)
            cross[chunk] += np.einsum("rps,rs->rp", weighted, np.nan_to_num(actual))
        progress("select predictors", done, len(origins))
    return gram, cross


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some series for one predictor, independent of all other pieces.

    seen   : (n_seen,) the series the predictor looks at
    wanted : (n_rows,) which of them are to be forecast
    """

    predictor: Predictor
    seen: Ints
    wanted: Ints

    @property
    def rows(self) -> Ints:
        """The series whose curves come out: (n_rows,)."""
        return self.seen[self.wanted]


def _pieces(predictor: Predictor, n_series: int, rows: Ints) -> list[_Piece]:
    """The forecast of the wanted rows in pieces that may run anywhere."""
    if len(rows) == 0:
        return []
    if predictor.pooled:
        # Its neighbours are what it learns from, so it sees some of them even where few forecasts are wanted.
        neighbours = np.linspace(0, n_series - 1, min(n_series, _NEIGHBOURS)).astype(np.int64)
        seen = np.union1d(rows, neighbours)
        return [_Piece(predictor, seen, np.searchsorted(seen, rows))]
    length = len(rows) if predictor.expensive else _CHUNK
    parts = [rows[start : start + length] for start in range(0, len(rows), length)]
    return [_Piece(predictor, part, np.arange(len(part))) for part in parts]


def _forecast(pieces: list[_Piece], usage: AnyFloats, days: Days, horizon: Days) -> Iterator[Floats32]:
    """Curves of each piece's rows in turn, (n_rows, n_horizon_days, 48)."""
    usage, days = usage[:, -_DAYS_LOOKED_AT:], days.take(slice(-_DAYS_LOOKED_AT, None))
    # A generator: the usage of a piece is copied out when its turn comes, unless it is all there is.
    return run_all(
        _curves,
        ((p.predictor, usage if len(p.seen) == len(usage) else usage[p.seen], days, horizon, p.wanted) for p in pieces),
    )


def _curves(predictor: Predictor, usage: AnyFloats, days: Days, horizon: Days, wanted: Ints) -> Floats32:
    """One piece of work: curves of the wanted rows of `usage`, (n_wanted, n_horizon_days, 48)."""
    if predictor.expensive:
        curves = _by_representatives(predictor, usage, days, horizon)
    else:
        curves = predictor.fit(usage, days).predict_curve(horizon)
    return (curves if len(wanted) == len(curves) else curves[wanted]).astype(np.float32)


def _by_representatives(predictor: Predictor, usage: AnyFloats, days: Days, horizon: Days) -> Floats:
    """Fit on the mean curves of a few clusters of like-shaped series, then bring to each series' level."""
    daily = nan_mean(usage)
    level = daily.mean(axis=1)
    safe = np.where(level > 0, level, 1.0)
    n_clusters = min(_REPRESENTATIVES, len(usage))
    with one_thread():
        distinct = len(np.unique(np.round(daily / safe[:, None], 6), axis=0))
        clusters = KMeans(min(n_clusters, distinct), n_init=1, random_state=0).fit_predict(daily / safe[:, None])
    curves = np.stack(
        [
            np.mean(filled_days(usage[members]) / safe[members, None, None], axis=0)
            for members in (np.flatnonzero(clusters == cluster) for cluster in range(clusters.max() + 1))
        ]
    )
    forecast = predictor.fit(curves, days).predict_curve(horizon)  # (n_clusters, n_horizon_days, 48)
    recent = nan_mean(usage[:, -7:]).mean(axis=1)
    of_cluster = nan_mean(curves[:, -7:]).mean(axis=1)
    ratio = recent / np.where(of_cluster > 0, of_cluster, 1.0)[clusters]
    return np.asarray(forecast[clusters] * ratio[:, None, None], dtype=np.float64)


def _solve(gram: Floats, cross: Floats, group: Ints, prior: Floats) -> Floats:
    """(n_rows, n_predictors) simplex weights of least weighted squared error, by exponentiated gradient.

    Kivinen & Warmuth 1997; the error is w'Gw - 2 w'c per series plus the mean error of its group.
    """
    size = np.einsum("rpp->r", gram) / gram.shape[1]
    informative = size > 0
    unit = np.where(informative, size, 1.0)
    gram, cross = gram / unit[:, None, None], cross / unit[:, None]
    weights = np.repeat(prior[None], len(gram), axis=0)
    for name in np.unique(group):
        members = group == name
        counted = members & informative
        if not counted.any():
            continue
        shared_gram, shared_cross = gram[counted].mean(axis=0), cross[counted].mean(axis=0)
        start = np.full((1, gram.shape[1]), 1 / gram.shape[1])
        shared = _exponentiated_gradient(shared_gram[None], shared_cross[None], start)
        mixed_gram = _GROUP_PULL * shared_gram + gram[members]
        mixed_cross = _GROUP_PULL * shared_cross + cross[members]
        weights[members] = _exponentiated_gradient(mixed_gram, mixed_cross, 0.9 * shared + 0.1 / gram.shape[1])
    return weights


def _exponentiated_gradient(gram: Floats, cross: Floats, start: Floats, steps: int = 150) -> Floats:
    weights = np.repeat(start, len(gram), axis=0) if len(start) == 1 else start.copy()
    for _ in range(steps):
        slope = np.einsum("rpq,rq->rp", gram, weights) - cross
        slope -= slope.min(axis=1, keepdims=True)
        step = 1.0 / np.maximum(slope.max(axis=1, keepdims=True), 0.05)
        weights = weights * np.exp(-0.5 * step * slope)
        weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _sparse(weights: Floats) -> Floats:
    """Tiny weights cost a whole fit and change nothing: dropped, the rest brought back to a sum of 1."""
    kept = np.where(weights < _SMALLEST_WEIGHT, 0.0, weights)
    total = kept.sum(axis=1, keepdims=True)
    return np.where(total > 0, kept / np.where(total > 0, total, 1.0), weights)
