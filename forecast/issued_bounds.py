"""Whether the bounds of a model held on a day that has come since: what backtests count and bounds are corrected by."""

from __future__ import annotations

import warnings

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.history import History
from forecast.model import PeakModel
from forecast.node_forecast import node_peaks_of, rows_among

_MEASURED = 0.5
"""A peak counts if at least this share of its day was measured."""


def daily_peaks(usage: AnyFloats) -> Floats:
    """Highest half hour of each day, NaN where the day was not measured: (..., n_days, 48) -> (..., n_days)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmax(usage, axis=-1), dtype=np.float64)


def service_hits(history: History, model: PeakModel, day: int) -> Floats:
    """Whether each service's peak of a day stayed within the 0.95 bound: (n_services, n_resources).

    1 = it did, 0 = it did not, NaN = unknown.

    day : index into the history's days. Services that the model does not know, or expects nothing of, are NaN.
    """
    row = rows_among(history.services, model.services)
    bound = np.full(history.usage_per_pod.shape[:2], np.nan)
    bound[row >= 0] = model.service_peaks(history.days[day])[row[row >= 0], :, -1]
    usage = history.usage_per_pod[:, :, day]
    counted = (bound > 0) & (np.isfinite(usage).mean(axis=2) >= _MEASURED)
    return np.where(counted, daily_peaks(usage) <= bound, np.nan)


def node_hits(history: History, model: PeakModel, day: int) -> Floats:
    """Whether each node's peak of a day stayed within its 0.95 bound: (n_nodes, n_resources), 1, 0, NaN = unknown.

    The pods are those that really ran that day: what is tested is the forecast of their load, not of placements.
    """
    bound = node_peaks_of(model, history, (history.days[day],))[:, :, 0, -1]
    usage = history.node_usage[:, :, day]
    counted = np.isfinite(bound) & (np.isfinite(usage).mean(axis=2) >= _MEASURED)
    return np.where(counted, daily_peaks(usage) <= bound, np.nan)
