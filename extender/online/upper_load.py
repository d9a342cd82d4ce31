"""The upper bound of what nodes use at the half hours ahead: predicted load, its margin, what pods declare on top."""

from __future__ import annotations

import numpy as np

from extender.online.upper_bounds import GAP_RESOURCES, Bounds
from forecast.arrays import AnyFloats, Floats, Ints
from scorer.predicted.cluster import PredictedCluster
from scorer.tracking import LIVE_HALF_LIFE_SLOTS

__all__ = ["upper_load"]


def upper_load(
    predicted: PredictedCluster, bounds: Bounds, beyond: Floats, position: int, first: int, end: int, rows: Ints
) -> AnyFloats:
    """(len(rows), end - first) shares of capacity; NaN = the capacity is not known.

    bounds   : of `predicted`; they know the rows
    beyond   : (n_rows,) base units that pods declare beyond the forecast
    position : of the resource in GAP_RESOURCES
    first    : half hour of the horizon that is under way; end: after the last
    """
    resource, load = GAP_RESOURCES[position], predicted.load
    upper: AnyFloats = load.share_between(resource, first, end, rows)
    upper += bounds.margin(position, first, end, rows)
    some = np.flatnonzero(beyond[rows])
    if len(some):
        # What a node is measured to use beyond its forecast is, first of all, just that, and is in the load already.
        declaring = rows[some]
        error = np.maximum(load.live_error(declaring.tolist())[:, resource], 0.0)
        fading = predicted.horizon.fading(LIVE_HALF_LIFE_SLOTS)[first:end]
        unseen = np.maximum(beyond[declaring, None] - error[:, None] * fading, 0.0)
        capacity = predicted.capacity[declaring, resource]
        upper[some] += unseen / np.where(capacity > 0, capacity, np.nan)[:, None]
    return upper
