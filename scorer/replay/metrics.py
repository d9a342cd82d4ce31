"""What a placement did to the nodes: hot half hours, uneven peaks, broken promises.

All shares are of physical capacity. A day is 24 hours from the moment of placement, so that an evening is never cut.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from cluster.predicted.limits import limited
from forecast.calendar import SLOTS_PER_DAY
from forecast.composition import node_load, peak_at
from forecast.resources import HOT_RESOURCES, HOT_SHARE, RESOURCES
from scorer.replay.curves import CurveForecast
from scorer.replay.playback import Playback
from scorer.replay.recording import Recording


@dataclass(frozen=True, slots=True)
class Coverage:
    """coverage = share of the n node-days whose peak stayed at or below the bound; NaN without any."""

    coverage: float
    n: int


def shares(load: AnyFloats, capacity: AnyFloats) -> Floats:
    """(n_nodes, n_resources, ..., n_slots) as share of capacity (n_nodes, n_resources, ...); NaN: that is no limit."""
    limits = limited(capacity)
    per_unit = np.where(limits, 1 / np.where(limits, capacity, 1.0), np.nan)
    return np.asarray(load * per_unit[..., None])


def hot_node_slots(share: AnyFloats) -> Bools:
    """Whether any resource that counts is over 80 %: (n_nodes, n_slots)."""
    return np.asarray((np.nan_to_num(share[:, list(HOT_RESOURCES)]) > HOT_SHARE).any(axis=1))


def daily_peaks(share: AnyFloats) -> Floats:
    """Highest half hour of each 24 hours: (n_nodes, n_resources, n_days); NaN where there is no limit."""
    return np.asarray(share.reshape(*share.shape[:2], -1, SLOTS_PER_DAY).max(axis=3))


def peak_variation(peaks: AnyFloats) -> Floats:
    """Coefficient of variation of the nodes' peaks, mean over the days: (n_resources,); NaN where nothing is limited.

    peaks : (n_nodes, n_resources, n_days)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a resource without any limit
        return np.asarray(np.nanmean(daily_peak_variation(peaks), axis=1))


def daily_peak_variation(peaks: AnyFloats) -> Floats:
    """The same of each day: (n_resources, n_days)."""
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanstd(peaks, axis=0) / np.nanmean(peaks, axis=0))


def bound_coverage(recording: Recording, playback: Playback, forecast: CurveForecast) -> dict[str, Coverage]:
    """How often the 0.95 bound of a node's daily peak held, per resource; empty for forecasts that promise none.

    The bound is that of the pods as they came and went, so that it is the usage forecast that is judged.
    """
    bound = forecast.bound
    if bound is None:
        return {}
    actual = playback.node_load(recording)
    placements = playback.placements(recording)
    result = {}
    for r, resource in enumerate(RESOURCES):
        if not actual[:, r].any():
            continue
        load = node_load(
            placements,
            forecast.mean[:, r],
            bound.own_variance[:, r],
            bound.shared_variance[:, r],
            forecast.base[:, r],
            bound.base_variance[:, r],
            float(bound.cluster_std[r]),
        )
        limit = peak_at(load, float(bound.z[r]))  # (n_nodes, n_days)
        peak = actual[:, r].reshape(len(actual), -1, SLOTS_PER_DAY).max(axis=2)
        held = peak <= limit
        result[resource.name] = Coverage(float(held.mean()), int(held.size))
    return result
