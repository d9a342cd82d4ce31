"""Which share each expert gets in a blend of quantile forecasts, and which experts a single series listens to."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from base.arrays import Floats
from forecast.quantiles import pinball_loss

LEARNING_DAYS = 14
_HALF_LIFE_DAYS = 30.0

_LARGEST_LOSS = 5.0
"""In units of the scale: a freak day counts as one very bad day and no more."""

_RATE_MID, _RATE_HIGH = 5.0, 2.5
_LEAST_PRIOR = 1e-3

_SMOOTHING = 0.02  # width of the rounded tip of the pinball loss, in units of the scaled peaks
_PRIOR_STRENGTH, _PRIOR_ROWS = 0.003, 500.0


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


# Which share each expert gets in a blend of quantile forecasts.
#
# Averages of experts' quantiles are usually better than the best of them (Lichtendahl, Grushka-Cockayne & Winkler 2013,
# "Is it better to average probabilities or quantiles?"), and non-negative weights that sum to 1 cannot run away.


def blend_weights(forecasts: Floats, actual: Floats, quantile: float, prior: Floats) -> Floats:
    """Simplex weights of least pinball loss, pulled towards `prior` the more the fewer rows there are.

        min over w on the simplex:  mean pinball(actual - forecasts w) + strength (1 + 500 / n_rows) KL(w || prior)

    forecasts : (n_rows, n_experts), scaled so that rows weigh alike (about 1)
    actual    : (n_rows,) same scale
    prior     : (n_experts,) > 0, sums to 1
    Returns (n_experts,), >= 0, sums to 1; the prior when there are no rows.
    """
    n_rows = len(actual)
    if n_rows == 0:
        return prior.copy()
    strength = _PRIOR_STRENGTH * (1 + _PRIOR_ROWS / n_rows)

    def loss(logits: Floats) -> tuple[float, Floats]:
        odds = np.exp(logits - logits.max())
        weights = odds / odds.sum()
        miss = actual - forecasts @ weights
        rounded = np.sqrt(miss * miss + _SMOOTHING**2)
        divergence = np.log(weights / prior + 1e-12)
        value = ((quantile - 0.5) * miss + 0.5 * rounded).mean() + strength * (weights * divergence).sum()
        slope = -(forecasts.T @ ((quantile - 0.5) + 0.5 * miss / rounded)) / n_rows + strength * (divergence + 1)
        return float(value), weights * (slope - (weights * slope).sum())

    found = minimize(loss, np.log(prior), jac=True, method="L-BFGS-B", options={"maxiter": 60})
    odds = np.exp(found.x - found.x.max())
    return np.asarray(odds / odds.sum(), dtype=np.float64)
