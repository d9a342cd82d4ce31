"""How far the upper bound of each node's predicted load lies above the load that placement weighs.

Placement weighs last week's curves at today's level (cluster/predicted/load.py), which are kept up to date pod by pod.
The bound that holds daily peaks in 19 of 20 cases is mean + z standard deviations (cluster/predicted/node_curves.py),
which takes seconds for a large cluster. So the difference is made now and then, and added to what is up to date:

    upper(t) = share(t) + max(0, bound(t) - share(t) as both were then)

What lands in between counts with its curve at once, with its spread a minute later.

The upper bound of what nodes use at the half hours ahead: predicted load and its margin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import AnyFloats, Bools, Floats32, Ints
from cluster.degradation import widening
from cluster.predicted.node_curves import gather, node_curves
from cluster.predicted.predicted_cluster import PredictedCluster
from cluster.readable_tables import ReadableTables
from cluster.tracking import TrackedCluster
from forecast.calendar import SLOTS_PER_DAY
from forecast.composition import bound_at
from forecast.model import PEAK_QUANTILES
from forecast.resources import CPU, MEMORY

GAP_RESOURCES: Final = (CPU, MEMORY)
"""Of the others Kubernetes knows no requests, and capacities are often guesses."""

_UPPER: Final = len(PEAK_QUANTILES) - 1

_NODES_AT_ONCE: Final = 250
"""Whose pods are copied in one go: a few milliseconds under the lock."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one model and local day; never changed.

    names   : of the nodes, by row
    margins : (n_rows, len(GAP_RESOURCES), n_points) shares of capacity, from midnight of today
    highest : (n_rows, len(GAP_RESOURCES)) of the points
    is_made : (n_rows,) nodes with margins for all resources
    """

    predicted: PredictedCluster
    names: tuple[str, ...]
    margins: Floats32
    highest: Floats32
    is_made: Bools

    def known(self, cluster: TrackedCluster) -> Bools:
        """(n_rows,) nodes of the cluster as it is now of which there is a bound."""
        names = cluster.state.names
        known = np.zeros(len(names), dtype=bool)
        n = min(len(self.names), len(names))
        known[:n] = self.is_made[:n]
        if tuple(names[:n]) != self.names[:n]:  # rows that have gone to other nodes since
            known[:n] &= [a == b for a, b in zip(names, self.names, strict=False)]
        return known

    def margin(self, position: int, first: int, end: int, rows: Ints) -> Floats32:
        """(len(rows), end - first) shares of capacity at points of today's horizon; `rows` are known ones.

        position : in GAP_RESOURCES
        """
        return np.asarray(self.margins[rows, position, first:end])

    def highest_margin(self, position: int, rows: Ints) -> Floats32:
        """(len(rows),) the highest that `margin` is anywhere."""
        return np.asarray(self.highest[rows, position])


class UpperBounds:
    """Made anew by one thread, read by others."""

    def __init__(self, hours: int = 24) -> None:
        """hours: so far ahead"""
        self._days = math.ceil((SLOTS_PER_DAY + 2 * hours) / SLOTS_PER_DAY)
        self._made: Bounds | None = None

    def of(self, cluster: TrackedCluster) -> Bounds | None:
        """Those of the model and day in use; None = not made yet. To be asked once per question: others come between
        two."""
        made = self._made
        return made if made is not None and made.predicted is cluster.predicted else None

    def is_for(self, cluster: TrackedCluster) -> bool:
        """Whether they are of the model and day in use, or there is none."""
        return cluster.predicted is None or self.of(cluster) is not None

    def refresh(self, tables: ReadableTables) -> bool:
        """Make them of the cluster as it is now, in steps between which others get at the tables. Whether there are
        new ones."""
        with tables.reading() as cluster:
            predicted, names = cluster.predicted, tuple(cluster.state.names)
            rows = np.flatnonzero(cluster.state.alive).tolist()
        if predicted is None:
            self._made = None
            return False
        horizon = predicted.horizon
        days = horizon.days[: self._days]
        n_points = len(days) * SLOTS_PER_DAY
        margin = np.full((len(names), len(GAP_RESOURCES), n_points), np.nan, dtype=np.float32)
        fading = horizon.fading()[:n_points]
        widen = widening((horizon.today - predicted.profiles.model.first_day).days)
        for start in range(0, len(rows), _NODES_AT_ONCE):
            with tables.reading() as cluster:
                if cluster.predicted is not predicted:
                    return False  # the next time
                here = [
                    row
                    for row in rows[start : start + _NODES_AT_ONCE]
                    if predicted.name_of(row) == names[row] and row < predicted.load.n_nodes
                ]
                if not here:
                    continue
                inputs = gather(predicted, here)
                shares = [predicted.load.share_between(r, 0, n_points, np.array(here, int)) for r in GAP_RESOURCES]
            curves = node_curves(predicted.profiles, predicted.bases, inputs, days, fading=fading, widen=widen)
            for position, resource in enumerate(GAP_RESOURCES):
                load, capacity = curves.loads[resource], inputs.capacity[:, resource]
                bound = bound_at(load, curves.z[:, resource, _UPPER, None])
                with np.errstate(invalid="ignore", divide="ignore"):
                    beyond = np.maximum(bound / capacity[:, None] - shares[position], 0.0)
                margin[here, position] = np.where(np.isfinite(beyond), beyond, np.nan)
        highest = margin.max(axis=2)
        self._made = Bounds(predicted, names, margin, highest, np.isfinite(highest).all(axis=1))
        return True


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
