"""The quantiles of each half hour of tomorrow that a model publishes, in agreement with its curve and its peaks."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.model import HALF_HOUR_LEVELS, PEAK_QUANTILES

_LARGEST_EFFECT = 20.0
"""Of an event or a holiday on a half hour: beyond it, an ordinary half hour of next to nothing was divided by."""


def quantiles_of_tomorrow(
    learnt: AnyFloats | None, *, ordinary: Floats, expected: Floats, variance: AnyFloats, peaks: Floats
) -> Floats:
    """What is published of tomorrow: (n_series, 48, n_levels) base units, ascending.

    learnt             : (n_series, 48, n_levels) of an ordinary day; NaN = the series has no recent past; None = the
                         history was too short to learn any
    ordinary, expected : (n_series, 48) curves without and with what is known of the day: holidays, events, month ends
    variance           : (n_series, 48) of the errors of past forecasts, which has to do where nothing was learnt
    peaks              : (n_series, n_peak_levels) quantiles of the day's peak at `PEAK_QUANTILES`
    """
    quantiles = normal_quantiles(expected, variance)
    if learnt is not None:
        effect = np.where(ordinary > 0, expected / np.where(ordinary > 0, ordinary, 1.0), 1.0)
        quantiles = np.where(np.isfinite(learnt), learnt * np.minimum(effect, _LARGEST_EFFECT)[..., None], quantiles)
    return below_peaks(quantiles, peaks)


def expected_of(quantiles: AnyFloats) -> Floats:
    """Mean of what has these quantiles, (n_series, 48, n_levels) -> (n_series, 48): Swanson's rule, 0.3, 0.4, 0.3 of
    the quantiles 0.1, 0.5 and 0.9.

    Hurst, Brown & Swanson 2000, "Swanson's 30-40-30 rule", AAPG Bulletin 84. On a node the means of pods add up.
    """
    weights = {0.1: 0.3, 0.5: 0.4, 0.9: 0.3}
    return np.asarray(quantiles @ np.array([weights.get(level, 0.0) for level in HALF_HOUR_LEVELS]))


def below_peaks(quantiles: AnyFloats, peaks: AnyFloats) -> Floats:
    """Quantiles of half hours that no quantile of the day's peak contradicts.

    A peak is at least as high as each half hour, so its quantile is at least theirs. The peak model sees whole days and
    is right more often: where they disagree, the half hours give way.

    quantiles : (n_series, 48, n_levels); peaks: (n_series, n_peak_levels), 0 = nothing is known
    """
    levels = np.array(HALF_HOUR_LEVELS)
    limit = np.full((len(peaks), len(levels)), np.inf)
    for index in reversed(range(len(PEAK_QUANTILES))):
        limit[:, levels <= PEAK_QUANTILES[index]] = peaks[:, [index]]
    limit[(peaks <= 0).any(axis=1)] = np.inf
    return np.asarray(np.minimum(quantiles, limit[:, None]))


def normal_quantiles(mean: AnyFloats, variance: AnyFloats) -> Floats:
    """Those of normal distributions: (..., 48) and (..., 48) -> (..., 48, n_levels), never below 0."""
    z = np.array([NormalDist().inv_cdf(level) for level in HALF_HOUR_LEVELS])  # a scorer loads no scipy
    return np.asarray(np.maximum(mean[..., None] + np.sqrt(np.nan_to_num(variance))[..., None] * z, 0.0))
