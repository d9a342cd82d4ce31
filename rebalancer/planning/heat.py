"""Heat: what a plan brings down. A node half hour clearly over the hot share of capacity counts about 1.

    penalty(x) = 2 max(x - 7/8 hot, 0) + 6 max(x - hot, 0)        of hot = 0.8: 0.2 at 0.8, 1 at 0.9, 3.4 at 1.2
    heat(node) = sum_slots sum_k w_k penalty(max_r (load_r + z_k margin_r) / capacity_r)

The worst resource counts: a node that lacks disk is not helped by free cores. Memory does not make a node hot; it only
must not overflow (tables.py). The penalty begins below the hot share, because the forecast errs, and is convex: an hour
at 1.2 hurts more than two at 0.9. It is piecewise linear, so that a linear programme says exactly the same.

The sum over k is the expected penalty over the forecast's error: a part of the margin below, none, a part above, with
the weights 1/6, 2/3, 1/6 of Gauss and Hermite's rule with three points (Abramowitz and Stegun, 25.4.46). So a target
that a usual error makes hot already costs something, and relief of a node that only such an error makes hot counts a
sixth.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from forecast.resources import CPU, HOT_RESOURCES, MEMORY
from rebalancer.planning.problem import Problem

ERROR: Final = 1 / 3
"""Of the margin: about one standard deviation of a half hour, since the margin bounds the peak of a whole day.

Chosen on trajectories of bursty VMs (benchmarks.trajectories): with none or all of the margin more hot half hours are
left.
"""

SCENARIOS: Final = ((0.0, 2 / 3), (ERROR, 1 / 6), (-ERROR, 1 / 6))
"""Errors of the forecast in margins, and their weights."""


# In all functions `hot` is the share of its capacity above which a node is hot.


def ramp(hot: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """From the first figure on, a share of capacity, the penalty grows by the second more for each whole capacity."""
    return (cool_share(hot), 2.0), (hot, 6.0)


def cool_share(hot: float) -> float:
    """A node whose bound stays below has no heat."""
    return round(hot * 7 / 8, 9)


def penalty(share: AnyFloats, hot: float) -> AnyFloats:
    """Return the penalty of shares of capacity, of any shape."""
    total: AnyFloats | None = None
    for start, slope in ramp(hot):
        over = np.maximum(share, start)
        over -= start
        over *= slope
        if total is None:
            total = over
        else:
            total += over
    assert total is not None  # the ramp has lines
    return total


def pieces(hot: float) -> list[tuple[float, float]]:
    """Return slope and intercept of the lines whose upper envelope is the penalty, without the line at 0."""
    slope = intercept = 0.0
    lines = []
    for start, more in ramp(hot):
        slope, intercept = slope + more, intercept - more * start
        lines.append((slope, intercept))
    return lines


def node_heat(share: AnyFloats, margin: AnyFloats, hot: float) -> Floats:
    """Return the heat of nodes: (...,).

    share, margin : (..., n_hot_resources, n_slots) of capacity; 0 where capacity is no limit
    """
    total, cool = np.zeros(share.shape[:-2]), cool_share(hot)
    worst = share.max(axis=-2)  # (..., n_slots)
    bound = (share + ERROR * margin).max(axis=-2)
    # Most nodes are cool, and only of the others the rest is of interest.
    warm: Bools = np.asarray(bound.max(axis=-1, initial=0.0)) > cool
    if not warm.any():
        return total
    if not warm.all():
        share, margin, worst, bound = share[warm], margin[warm], worst[warm], bound[warm]
    found = SCENARIOS[0][1] * penalty(worst, hot) + SCENARIOS[1][1] * penalty(bound, hot)
    if worst.max() > cool:
        found += SCENARIOS[2][1] * penalty((share - ERROR * margin).max(axis=-2), hot)
    total[warm] = found.sum(axis=-1, dtype=np.float64)
    return total


def hot_half_hours(share: AnyFloats, hot: float) -> int:
    """Return how many node half hours lie over the hot share: of (..., n_hot_resources, n_slots)."""
    return int((share.max(axis=-2) > hot).sum())


def resources_that_count(problem: Problem) -> list[int]:
    """Return the resources that limit some node, and CPU: those that make nodes hot first, then memory."""
    limits = np.asarray(np.isfinite(problem.capacity).any(axis=0))
    return [r for r in (*HOT_RESOURCES, MEMORY) if r == CPU or limits[r]]


def n_hot_resources(resources: list[int]) -> int:
    """Return how many of `resources_that_count` make a node hot."""
    return sum(r in HOT_RESOURCES for r in resources)
