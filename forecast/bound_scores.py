"""By how much bounds have to move, from the moves that would have made those of the last nights just hold.

The score of a bound is the offset at which it would have met the peak that came. The 0.95 quantile of the last nights'
scores is therefore the offset that would have covered 95 % of them: a step as long as the error, up or down (quantile
tracking of scores, Angelopoulos, Candes and Tibshirani 2023, "Conformal PID Control for Time Series Prediction"; the
half-lives follow Barber et al. 2023, "Conformal prediction beyond exchangeability").

    offset(unit) = shared + own(unit)

shared : of the resource, from all of its scores of the last nights. One night of misses lifts it, two nights with room
         for it bring it down.
own    : of one service or node beyond it, from its own scores of four weeks among as many of all as make chance small.
"""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Floats

NIGHTS = 28
"""Scores that are kept of each service and node."""

FURTHEST = 10.0
"""Scores beyond this say only that something happened which no bound foresees."""

_LEVEL = 0.95
_SHARED_HALF_LIFE, _OWN_HALF_LIFE = 3.0, 14.0
"""Nights. What all services do together changes within days; what one does beyond them is seen on few nights."""

_NIGHTS_DOWN, _ROOM = 2, 0.3
"""A quantile of all these nights comes down only when the high ones are forgotten. So the last two nights limit it, to
what the higher of them needed and a little more: less than this is chance."""

_SCORES_OF_HALF_TRUST = 20.0
"""Two nights of ten nodes, say, whose errors are one night's as often as not."""

_OWN_PRIOR_SCORES = 120.0
"""Scores of all services among which those of one count: its own 28 alone hold one or two above a 0.95 quantile."""

_FURTHEST_OWN = 1.0
_SHARE_DOWN = 0.7
"""Bounds come down by this share of what they could have. After a drift the forecaster narrows them as well, from the
same days, and a bound that is too low costs 19 times as much as one that is too high."""

_POOL = (np.arange(40) + 0.5) / 40


def offsets_of(scores: AnyFloats) -> tuple[Floats, Floats]:
    """Return the offsets that the scores ask for: of each resource (n_resources,), of each unit (n_units, n_resources).

    scores : (n_units, n_resources, n_nights) of services or nodes, the newest last; NaN = none
    A unit without scores gets what its resource gets, and a resource without any gets 0.
    """
    n_units, n_resources, n_nights = scores.shape
    shared, own = np.zeros(n_resources), np.zeros((n_units, n_resources))
    age = np.arange(n_nights, 0, -1) - 1.0
    recent, lasting = 0.5 ** (age / _SHARED_HALF_LIFE), 0.5 ** (age / _OWN_HALF_LIFE)
    for r in range(n_resources):
        of_units = np.asarray(scores[:, r], dtype=np.float64)
        known = np.isfinite(of_units)
        if not known.any():
            continue
        beyond = of_units - _trusted(of_units.T, np.ones(n_units))  # less what the night asked of all
        pool = np.quantile(beyond[known], _POOL)
        values = np.concatenate([beyond, np.broadcast_to(pool, (n_units, len(pool)))], axis=1)
        weights = np.concatenate([lasting, np.full(len(pool), _OWN_PRIOR_SCORES / len(pool))])
        among = weighted_quantile(values, weights) - weighted_quantile(pool[None], np.ones(len(pool)))
        own[:, r] = np.where(known.any(axis=1), np.clip(among, -_FURTHEST_OWN, _FURTHEST_OWN), 0.0)
        rest = of_units - own[:, r, None]
        common = float(_trusted(rest.reshape(1, -1), np.tile(recent, n_units))[0])
        last = np.flatnonzero(known.any(axis=0))[-_NIGHTS_DOWN:]
        if len(last) == _NIGHTS_DOWN:
            common = min(common, float(_trusted(rest[:, last].T, np.ones(n_units)).max()) + _ROOM)
        shared[r] = common if common > 0 else _SHARE_DOWN * common
    return shared, shared + own


def weighted_quantile(values: AnyFloats, weights: AnyFloats) -> Floats:
    """Return the 0.95 quantile of each row: (n_rows,); values (n_rows, n), NaN = none; weights (n,)."""
    order = np.argsort(values, axis=1)  # NaN last
    ordered = np.take_along_axis(np.asarray(values, dtype=np.float64), order, axis=1)
    total = np.cumsum(np.where(np.isfinite(ordered), np.asarray(weights, dtype=np.float64)[order], 0.0), axis=1)
    at = (total < _LEVEL * total[:, -1:] - 1e-9).sum(axis=1)
    return np.asarray(ordered[np.arange(len(ordered)), at])


def _trusted(values: AnyFloats, weights: AnyFloats) -> Floats:
    """The same, nearer to 0 where few values are known; 0 where none is."""
    number = np.where(np.isfinite(values), weights, 0.0).sum(axis=1)
    trust = number / (number + _SCORES_OF_HALF_TRUST)
    return np.where(number > 0, trust * weighted_quantile(values, weights), 0.0)
