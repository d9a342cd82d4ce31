"""CRPS and MASE of half-hour curves over those of a seasonal naive, as BOOM and GIFT-Eval define them.

CRPS: mean over the quantiles 0.1 to 0.9 of 2 x pinball loss / sum of |actual|. MASE: mean absolute error of the
median / mean absolute difference of the history to the day before. Both are divided by those of a copy of the day
before, a point forecast, series by series; then the shifted geometric mean over the series is taken.
"""

from __future__ import annotations

import numpy as np

from base.arrays import Floats
from forecast.quantiles import pinball_loss

BOOM = (
    ("Toto 2.0, 2.5B", 0.581, 0.349),
    ("Toto 2.0, 4m", 0.624, 0.377),
    ("TimesFM 2.5, 200M", 0.632, 0.382),
    ("Chronos-2", 0.641, 0.392),
    ("Chronos-Bolt base", 0.726, 0.451),
    ("AutoARIMA", 0.824, 0.736),
    ("AutoETS", 0.842, 1.975),
    ("AutoTheta", 1.123, 1.018),
    ("seasonal naive", 1.0, 1.0),
)
"""Model, MASE and CRPS of BOOM's leaderboard (DataDog/toto, boom/leaderboards/boom_leaderboard.csv), 2026."""

_SHIFT = 1e-5


def crps(actual: Floats, curves: Floats, quantiles: tuple[float, ...]) -> Floats:
    """Sum over half hours of 2 x the mean pinball loss, for each series.

    actual    : (n_series, n_slots), NaN = not measured
    curves    : (n_series, n_slots, n_quantiles)
    quantiles : those up to 0.9 count, as in BOOM
    Returns (n_series,) in the unit of `actual`.
    """
    used = [index for index, quantile in enumerate(quantiles) if quantile < 0.91]
    losses = [2 * np.nansum(pinball_loss(actual, curves[..., i], quantiles[i]), axis=1) for i in used]
    return np.asarray(np.mean(losses, axis=0))


def absolute_error(actual: Floats, median: Floats) -> Floats:
    """Sum over half hours of the absolute error of a median forecast, for each series: (n_series,)."""
    return np.asarray(np.nansum(np.abs(actual - median), axis=1))


def over_naive(loss: Floats, naive: Floats) -> float:
    """Shifted geometric mean over series of loss / the seasonal naive's loss; NaN without a series.

    Series that the seasonal naive forecasts exactly are left out, as in BOOM.
    """
    changes = naive > 0
    if not changes.any():
        return float("nan")
    return float(np.exp(np.log(loss[changes] / naive[changes] + _SHIFT).mean()) - _SHIFT)
