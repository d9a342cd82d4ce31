"""Error, coverage and spread, day by day, over all nodes. Shares are of physical capacity.

The definitions are those of the rules and of the other reports: a node's peak of a day is its highest half hour, held
by the 0.95 bound or not (docs/understand/backtest.md); hot is above 80 % (docs/understand/placement.md); the spread is
the coefficient of variation of the nodes' peaks.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from forecast.history import History
from forecast.issued_bounds import daily_peaks
from forecast.resources import RESOURCES
from forecast_scheduler.reports.peaks_report.day_reading import DayReading
from scorer.replay.metrics import hot_node_slots, peak_variation, shares

_MEASURED_SHARE = 0.5
"""A node-day counts from this share of its half hours on, as in the backtest."""


@dataclass(frozen=True, slots=True)
class DayScore:
    """How one day's forecast did on the nodes. NaN = nothing to judge by.

    error    : (n_resources,) mean of |actual - expected| / capacity over nodes and half hours
    bias     : (n_resources,) mean of (actual - expected) / capacity; above 0 = more came than was expected
    coverage : (n_resources,) share of the node-days whose peak stayed at or below the 0.95 bound
    n_nodes  : (n_resources,) node-days that coverage is over
    left_out : measured node-days of any resource with a pod that the model knew nothing of
    """

    error: Floats
    bias: Floats
    coverage: Floats
    n_nodes: Ints
    left_out: int


@dataclass(frozen=True, slots=True)
class Spread:
    """What the nodes did, whatever was forecast. NaN = not measured.

    variation : (n_resources, n_days) coefficient of variation of the nodes' peaks, as share of capacity
    hot       : (n_days,) share of measured node half hours in which a resource that counts is over 80 %
    """

    variation: Floats
    hot: Floats


def score_day(reading: DayReading, actual: AnyFloats, capacity: AnyFloats) -> DayScore:
    """Hold a day's forecast against what came.

    actual   : (n_nodes, n_resources, 48)
    capacity : (n_nodes, n_resources) of that day
    """
    measured = np.isfinite(actual).mean(axis=2) >= _MEASURED_SHARE  # (n_nodes, n_resources)
    predicted = np.isfinite(reading.node_peaks).all(axis=2)
    judged = measured & predicted & reading.understood
    miss = np.where(judged[:, :, None], shares(actual - reading.node_mean, capacity), np.nan)
    held = daily_peaks(actual) <= reading.node_peaks[:, :, -1]
    n = judged.sum(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a resource that is not measured
        return DayScore(
            error=np.asarray(np.nanmean(np.abs(miss), axis=(0, 2))),
            bias=np.asarray(np.nanmean(miss, axis=(0, 2))),
            coverage=np.where(n > 0, (held & judged).sum(axis=0) / np.maximum(n, 1), np.nan),
            n_nodes=n,
            left_out=int((measured & predicted & ~reading.understood).any(axis=1).sum()),
        )


def spread_of(history: History) -> Spread:
    """Over all days of the history."""
    variation, hot = np.full((len(RESOURCES), history.n_days), np.nan), np.full(history.n_days, np.nan)
    capacity = history.capacity_of_days
    for day in range(history.n_days):
        share = shares(history.node_usage[:, :, day], capacity[:, :, day])  # (n_nodes, n_resources, 48)
        enough = np.isfinite(share).mean(axis=2) >= _MEASURED_SHARE
        peaks = np.where(enough, daily_peaks(share), np.nan)
        variation[:, day] = peak_variation(peaks[:, :, None])
        there = np.isfinite(share).any(axis=1)  # (n_nodes, 48)
        if there.any():
            hot[day] = float(hot_node_slots(share)[there].mean())
    return Spread(variation, hot)
