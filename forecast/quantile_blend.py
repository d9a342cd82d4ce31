"""Which share each expert gets in a blend of quantile forecasts.

Averages of experts' quantiles are usually better than the best of them (Lichtendahl, Grushka-Cockayne & Winkler 2013,
"Is it better to average probabilities or quantiles?"), and non-negative weights that sum to 1 cannot run away.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from base.arrays import Floats

_SMOOTHING = 0.02  # width of the rounded tip of the pinball loss, in units of the scaled peaks
_PRIOR_STRENGTH, _PRIOR_ROWS = 0.003, 500.0


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
