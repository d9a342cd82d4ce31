"""How wrong a quantile forecast is. Lower is better for every `*_loss`; coverage has a target instead."""

from __future__ import annotations

import numpy as np

from base.arrays import Floats


def pinball_loss(actual: Floats, forecast: Floats, quantile: float) -> Floats:
    """Loss whose expectation the true quantile minimises, elementwise and without the factor 2 some authors use.

        loss = max(q (y - f), (q - 1) (y - f))

    Koenker & Bassett 1978, "Regression Quantiles", Econometrica 46, eq. 3.1. NaN stays NaN.

    actual, forecast : any shapes that broadcast, same unit
    quantile         : in (0, 1)
    """
    miss = actual - forecast
    return np.asarray(np.maximum(quantile * miss, (quantile - 1.0) * miss), dtype=np.float64)


def coverage(actual: Floats, forecast: Floats) -> float:
    """Share of the actual values at or below the forecast, over pairs where both are known; NaN without a pair."""
    known = np.isfinite(actual) & np.isfinite(forecast)
    return float((actual[known] <= forecast[known]).mean()) if known.any() else float("nan")
