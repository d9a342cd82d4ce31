"""How wrong a forecast is, in parts that add up differently on a node.

A residual of a service's mean curve, e = actual - forecast, has variance shared^2 + own^2 / n: what its n replicas
do wrong together, and the scatter of single pods that their mean leaves. `own` is seen directly as the variance between
pods. Across services, what the whole cluster does wrong together shows as error of the cluster's total beyond the sum
of the parts (docs/understand/model.md, "Reading it").
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Floats

_SMOOTHING = np.array([1.0, 2.0, 3.0, 2.0, 1.0])
"""A slot is seen on a few residual days only; its neighbours of two and a half hours lend it theirs."""

_MOST_CLUSTER_STD = 1.0
"""An error common to the cluster, as a share of its load, is below this. If it seems larger, the load came from
elsewhere than forecast: the error has no proportion to what was expected, and multiplies no node's load."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviations of the three parts.

    own_std, shared_std : (n_services, n_resources, 48) base units
    cluster_std         : (n_resources,) share of the load, below 1; 0 where the errors have no proportion to the load
    """

    own_std: Floats
    shared_std: Floats
    cluster_std: Floats


def spread_of(residuals: AnyFloats, forecast: AnyFloats, replicas: AnyFloats, pod_variance: AnyFloats) -> Spread:
    """Split out-of-sample residuals into own, shared and cluster-wide error.

    residuals    : (n_services, n_resources, n_days, 48) actual - forecast of the mean per pod; NaN = not measured
    forecast     : same shape, what was forecast
    replicas     : (n_services, n_days, 48) pods present on those days
    pod_variance : (n_services, n_resources, n_days, 48) variance between pods; NaN = fewer than two
    """
    count = np.maximum(np.nan_to_num(np.asarray(replicas, dtype=np.float64), nan=1.0), 1.0)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # services or slots without a residual
        own = np.nanmean(pod_variance, axis=2)  # (n_services, n_resources, 48)
        mean_square = np.nanmean(residuals**2, axis=2)
        mean_count = np.nan_to_num(np.nanmean(np.broadcast_to(count, residuals.shape), axis=2), nan=1.0)
    own, mean_square = smooth_slots(np.nan_to_num(own)), smooth_slots(np.nan_to_num(mean_square))
    shared = np.maximum(mean_square - own / mean_count, 0.05 * mean_square)

    total_error = np.nansum(residuals * count, axis=0)  # (n_resources, n_days, 48)
    total_load = np.nansum(np.where(np.isfinite(residuals), forecast * count, 0.0), axis=0)
    explained = np.nansum(shared[:, :, None] * count**2 + own[:, :, None] * count, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        excess = (total_error**2 - explained).sum(axis=(1, 2)) / (total_load**2).sum(axis=(1, 2))
    excess = np.nan_to_num(excess)
    cluster = np.sqrt(np.where(excess < _MOST_CLUSTER_STD**2, np.maximum(excess, 0.0), 0.0))
    return Spread(np.sqrt(own), np.sqrt(shared), cluster)


def with_level_error(spread: Spread, usage: AnyFloats, level_error: AnyFloats) -> Spread:
    """The spread of services whose very level is a guess: all their replicas are off by the same factor.

    usage       : (n_services, n_resources, n_days, 48) expected usage of the days to come; NaN = unknown
    level_error : (n_services, n_resources) standard error of the level as a share of it
    """
    of_level = level_error[..., None] * np.nan_to_num(usage).mean(axis=2)  # (n_services, n_resources, 48)
    return Spread(spread.own_std, np.hypot(spread.shared_std, of_level), spread.cluster_std)


def smooth_slots(table: AnyFloats) -> Floats:
    """Weighted mean with the neighbouring slots of the day, round midnight; the slot axis is the last."""
    reach = len(_SMOOTHING) // 2
    padded = np.concatenate([table[..., -reach:], table, table[..., :reach]], axis=-1).astype(np.float64)
    n_slots = table.shape[-1]
    total = np.zeros(table.shape)
    for i, weight in enumerate(_SMOOTHING):
        total += weight * padded[..., i : i + n_slots]
    return total / float(_SMOOTHING.sum())
