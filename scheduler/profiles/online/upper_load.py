"""The upper bound of what nodes use at the half hours ahead: predicted load and its margin."""

from __future__ import annotations

from base.arrays import AnyFloats, Ints
from cluster.predicted.cluster import PredictedCluster
from scheduler.profiles.online.upper_bounds import GAP_RESOURCES, Bounds


def upper_load(
    predicted: PredictedCluster, bounds: Bounds, position: int, first: int, end: int, rows: Ints
) -> AnyFloats:
    """(len(rows), end - first) shares of capacity; NaN = the capacity is not known.

    bounds   : of `predicted`; they know the rows
    position : of the resource in GAP_RESOURCES
    first    : half hour of the horizon that is under way; end: after the last
    """
    upper: AnyFloats = predicted.load.share_between(GAP_RESOURCES[position], first, end, rows)
    upper += bounds.margin(position, first, end, rows)
    return upper
