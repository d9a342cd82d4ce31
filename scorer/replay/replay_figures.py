"""The figures of a replay: what a placement did to the nodes, per rule, and how much of the way to the true future was
gone.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from cluster.predicted.unknown_capacity import limited
from forecast.calendar import SLOTS_PER_DAY
from forecast.composition import node_load, peak_at
from forecast.resources import HOT_RESOURCES, RESOURCES
from scorer.replay.curves import CurveForecast
from scorer.replay.recording import Recording
from scorer.replay.running_cluster import Playback

SMALLEST_GAP = 0.005
"""Where native is no further than this from the true future, a share of the gap would be a share of noise."""


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


def hot_node_slots(share: AnyFloats, hot: float) -> Bools:
    """Whether any resource that counts is over the share `hot` of its capacity: (n_nodes, n_slots)."""
    return np.asarray((np.nan_to_num(share[:, list(HOT_RESOURCES)]) > hot).any(axis=1))


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
        limit = peak_at(load, bound.z[:, r, None])  # (n_nodes, n_days)
        peak = actual[:, r].reshape(len(actual), -1, SLOTS_PER_DAY).max(axis=2)
        held = peak <= limit
        result[resource.name] = Coverage(float(held.mean()), int(held.size))
    return result


@dataclass(frozen=True, slots=True)
class RuleFigures:
    """What one rule's placement led to.

    hot_share       : share of node-half-hours in which CPU, disk, network or log is over the hot share of capacity
    peak_cv         : resource -> coefficient of variation of the nodes' daily peaks (as share of capacity)
    p99_peak        : resource -> 0.99 quantile of the nodes' daily peaks
    max_peak        : resource -> the highest of them
    unplaced        : pods whose requests fitted on no node
    bound_coverage  : resource -> how often the forecast's 0.95 bound of a node's daily peak held
    daily_hot_share : (n_days,) hot_share of each 24 hours, for intervals
    daily_peak_cv   : resource -> (n_days,) peak_cv of each 24 hours, NaN = none used it that day
    """

    hot_share: float
    peak_cv: dict[str, float]
    p99_peak: dict[str, float]
    max_peak: dict[str, float]
    unplaced: int
    bound_coverage: dict[str, Coverage] = field(default_factory=dict)
    daily_hot_share: tuple[float, ...] = ()
    daily_peak_cv: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        result: dict[str, Any] = {
            "hot_share": self.hot_share,
            "peak_cv": self.peak_cv,
            "p99_peak": self.p99_peak,
            "max_peak": self.max_peak,
            "unplaced": self.unplaced,
            "daily_hot_share": list(self.daily_hot_share),
            "daily_peak_cv": {
                name: [spread if np.isfinite(spread) else None for spread in spreads]
                for name, spreads in self.daily_peak_cv.items()
            },
        }
        if self.bound_coverage:
            result["node_bound_coverage"] = {
                name: {"coverage": c.coverage, "n": c.n} for name, c in self.bound_coverage.items()
            }
        return result


def figures_of(
    share: Floats, unplaced: int, coverage: Mapping[str, Coverage], hot: float, assumed: Bools | None = None
) -> RuleFigures:
    """Figures from what the nodes used.

    share   : (n_nodes, n_resources, n_slots) of capacity, NaN = no limit
    hot     : share of its capacity above which a node is hot
    assumed : (n_nodes, n_resources) capacities that are assumed, and so make no node hot; None = none of them
    """
    is_hot = hot_node_slots(share if assumed is None else np.where(assumed[:, :, None], np.nan, share), hot)
    peaks = daily_peaks(share)  # (n_nodes, n_resources, n_days)
    by_day = daily_peak_variation(peaks)  # (n_resources, n_days)
    variation = peak_variation(peaks)
    # An unused resource has no spread to speak of.
    used = [r for r in range(len(RESOURCES)) if np.isfinite(variation[r])]
    return RuleFigures(
        hot_share=float(is_hot.mean()),
        peak_cv={RESOURCES[r].name: float(variation[r]) for r in used},
        p99_peak={RESOURCES[r].name: float(np.nanquantile(peaks[:, r], 0.99)) for r in used},
        max_peak={RESOURCES[r].name: float(np.nanmax(peaks[:, r])) for r in used},
        unplaced=unplaced,
        bound_coverage=dict(coverage),
        daily_hot_share=tuple(is_hot.reshape(len(is_hot), peaks.shape[2], -1).mean(axis=(0, 2)).tolist()),
        daily_peak_cv={RESOURCES[r].name: tuple(by_day[r].tolist()) for r in used},
    )


def gap_closed(native: RuleFigures, forecast: RuleFigures, oracle: RuleFigures) -> dict[str, Any]:
    """(native - forecast) / (native - oracle) for the hot share and each resource's spread of peaks; None = no gap."""
    hot, spreads = _gaps(native, forecast, oracle)
    return {"hot_share": hot[0], "peak_cv": {name: share for name, (share, _) in spreads.items()}}


def no_gap(native: RuleFigures, forecast: RuleFigures, oracle: RuleFigures) -> dict[str, Any]:
    """Why a figure has no gap to close, in the shape of `gap_closed`; None or absent = it has one."""
    hot, spreads = _gaps(native, forecast, oracle)
    return {"hot_share": hot[1], "peak_cv": {name: why for name, (_, why) in spreads.items() if why is not None}}


_Gap = tuple[float | None, str | None]
"""The share of the gap that is closed, else the reason why there is none."""


def _gaps(native: RuleFigures, forecast: RuleFigures, oracle: RuleFigures) -> tuple[_Gap, dict[str, _Gap]]:
    """Of the hot share, and of each resource's spread of peaks."""
    hot = _closed(
        (native.hot_share, forecast.hot_share, oracle.hot_share), (native.daily_hot_share, oracle.daily_hot_share)
    )
    return hot, {
        name: _closed(
            (spread, forecast.peak_cv.get(name), oracle.peak_cv.get(name)),
            (native.daily_peak_cv.get(name, ()), oracle.daily_peak_cv.get(name, ())),
        )
        for name, spread in native.peak_cv.items()
    }


def _closed(figures: tuple[float, float | None, float | None], daily: tuple[Sequence[float], Sequence[float]]) -> _Gap:
    """One figure's gap.

    figures : of native, forecast and oracle; None where a rule put nothing on any node that has a limit
    daily   : of native and oracle on each day, empty = not known
    """
    native, forecast, oracle = figures
    if forecast is None or oracle is None:
        return None, "one of the rules used no node that has a limit"
    gain = native - oracle
    if gain < SMALLEST_GAP:
        return None, f"the true future gains nothing over native ({oracle:.3f} against {native:.3f})"
    noise = _noise(*daily)
    if gain <= noise:
        return None, f"the true future gains {gain:.3f} over native, within the noise of the days ({noise:.3f})"
    return (native - forecast) / gain, None


def _noise(native: Sequence[float], oracle: Sequence[float]) -> float:
    """Two standard errors of the mean difference between paired days; 0 where fewer than two are known."""
    if len(native) != len(oracle):
        return 0.0
    difference = np.subtract(native, oracle)
    difference = difference[np.isfinite(difference)]
    return float(2.0 * difference.std(ddof=1) / np.sqrt(len(difference))) if len(difference) > 1 else 0.0
