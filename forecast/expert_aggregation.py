"""Which experts a single series listens to: those that were right about this series in the last days.

The exponentially weighted average forecaster (Cesa-Bianchi & Lugosi 2006, "Prediction, Learning, and Games", ch. 2)
with the pinball loss, as in CRPS learning (Berrisch & Ziel 2023, Journal of Econometrics 237). Its prior are
the weights that all series of a group share (`forecast/quantile_blend.py`).
"""

from __future__ import annotations

import numpy as np

from base.arrays import Floats
from forecast.losses import pinball_loss

LEARNING_DAYS = 14
_HALF_LIFE_DAYS = 30.0
_LARGEST_LOSS = 5.0
"""In units of the scale: a freak day counts as one very bad day and no more."""
_RATE_MID, _RATE_HIGH = 5.0, 2.5
_LEAST_PRIOR = 1e-3


def expert_losses(actual: Floats, experts: Floats, scale: Floats, quantile: float) -> Floats:
    """How wrong each expert was about one day, in units of the series' scale: (n_rows, n_experts).

    actual, scale : (n_rows,) NaN and 0 = not measured, never used anything: such a row tells the experts apart no more
    experts       : (n_rows, n_experts) at that quantile
    """
    unit = np.where(scale > 0, scale, np.inf)[:, None]
    losses = np.minimum(pinball_loss(actual[:, None] / unit, experts / unit, quantile), _LARGEST_LOSS)
    return np.asarray(np.where(np.isfinite(actual)[:, None], losses, np.nan), dtype=np.float64)


def decayed_sums(losses: Floats) -> tuple[Floats, Floats]:
    """The sum of each expert's losses, in which older days count less, and the number of days, counted likewise.

    losses : (n_rows, n_days, n_experts, ...) oldest day first, NaN = not measured
    Returns (n_rows, n_experts, ...) and (n_rows,).
    """
    n_rows, n_days = losses.shape[:2]
    by_day = losses.reshape(n_rows, n_days, int(np.prod(losses.shape[2:])))
    decay = 0.5 ** (np.arange(n_days)[::-1] / _HALF_LIFE_DAYS)
    measured = np.isfinite(by_day[..., 0]) if by_day.shape[2] else np.zeros((n_rows, n_days), dtype=np.bool_)
    total = np.einsum("rde,d->re", np.where(measured[..., None], by_day, 0.0), decay)
    return total.reshape(n_rows, *losses.shape[2:]), measured @ decay


def series_weights(total: Floats, days: Floats, prior: Floats, quantile: float) -> Floats:
    """Weights of every series: (n_rows, n_experts), >= 0, rows sum to 1.

        w_e  ~  prior_e exp(-rate sqrt(n) L_e / mean_e L)

    L: the sum of an expert's losses; n: the number of days in it. Losses relative to their mean make
    one rate fit calm and wild series; the square root of n is what the theory asks of a rate for n days.

    total, days : (n_rows, n_experts) and (n_rows,) from `decayed_sums`
    prior       : (n_rows, n_experts) >= 0, rows sum to 1
    """
    mean = total.mean(axis=1)
    rate = (_RATE_MID if quantile <= 0.7 else _RATE_HIGH) * np.sqrt(days) / np.where(mean > 0, mean, 1.0)
    worse = total - total.min(axis=1, keepdims=True)
    weights = (prior + _LEAST_PRIOR) * np.exp(-rate[:, None] * worse)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)
