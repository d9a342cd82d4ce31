"""PredictedPeak: nodes whose predicted load meets the pod's own hours least, as points that can be added to others.

Shares are known of all nodes (scores/energy.py), exact costs of a short list (cluster/predicted/power_growth.py). A
cost says which node is better, not by how much in the units of other scores; a share of capacity does.
"""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from cluster.predicted.unknown_capacity import neutral_score_where_unknown
from scorer.scores import MAX_NODE_SCORE

_BEND = 0.9  # share of capacity from which the line bends, so that an overloaded node still differs from a worse one


def points_of_share(share: AnyFloats) -> Floats:
    """One point is one percent of capacity: any shape -> the same shape, in [0, 100], strictly falling.

        100 (1 - share)                      up to share 0.9
        10 exp(-(share - 0.9) / 0.1)         beyond; value and slope agree where they meet

    share : predicted share of capacity, 0 or more; NaN stays NaN
    """
    share = np.maximum(share, 0.0)
    rest = 1.0 - _BEND
    line = MAX_NODE_SCORE * (1.0 - share)
    return np.asarray(np.where(share <= _BEND, line, MAX_NODE_SCORE * rest * np.exp((_BEND - share) / rest)))


def predicted_peak_score(share: AnyFloats, exact: AnyFloats, out_of_memory: Bools) -> Floats:
    """Score nodes by the load predicted at the hours in which the pod is busy.

    1. Points of the share, see `points_of_share`.
    2. The short list keeps its own set of points, dealt out in the order of the exact cost: that cost decides among the
       best few, without touching what lies between them and the rest. Nodes of equal cost all get the highest of the
       points dealt to them.
    3. Nodes predicted to run out of memory get 0 and take no part in 2, unless all known nodes are among them.
    4. Unknown nodes get the median of the known.

    share         : (n_nodes,) mean predicted share of capacity over the coming week, weighted by the pod's own profile,
                    the pod itself counted half; NaN = unknown node
    exact         : (n_nodes,) growth of the weighted sum of fourth powers, lower is better; NaN = not on the short list
    out_of_memory : (n_nodes,) memory is predicted to run out with the pod
    Returns (n_nodes,) in [0, 100], higher is better.
    """
    known = np.isfinite(share)
    points = np.where(known, points_of_share(share), 0.0)
    points = _by_exact_cost(points, exact, known, out_of_memory, worst=np.zeros(len(points)))
    return neutral_score_where_unknown(points, known)


def predicted_peak_ranking(share: AnyFloats, exact: AnyFloats, out_of_memory: Bools) -> Floats:
    """The same as points of unlimited range: 100 (1 - share) whatever the share, so that the distance between two
    overloaded nodes is kept. For sums that are not cut at 0 and 100.

    Nodes predicted to run out of memory lose 10 points and come after the worst of the others.
    Returns (n_nodes,), NaN = unknown.
    """
    known = np.isfinite(share)
    points = MAX_NODE_SCORE * (1.0 - np.maximum(np.where(known, share, 0.0), 0.0))
    safe = known & ~out_of_memory
    worst = np.minimum(points, points[safe].min(initial=MAX_NODE_SCORE)) - 10.0
    points = _by_exact_cost(points, exact, known, out_of_memory, worst=worst)
    return np.where(known, points, np.nan)


def _by_exact_cost(points: Floats, exact: AnyFloats, known: Bools, out_of_memory: Bools, *, worst: Floats) -> Floats:
    """Points after steps 2 and 3 of `predicted_peak_score`. worst: (n_nodes,) of nodes that run out of memory."""
    points = points.copy()
    passed_over = known & out_of_memory
    if passed_over.sum() == known.sum():
        passed_over = np.zeros_like(known)
    points[passed_over] = worst[passed_over]
    short_list = np.flatnonzero(np.isfinite(exact) & known & ~passed_over)
    points[short_list] = _dealt(points[short_list], exact[short_list])
    return points


def _dealt(points: Floats, cost: AnyFloats) -> Floats:
    """The same points, the highest to the lowest cost; equal costs get the highest of theirs."""
    order: Ints = np.argsort(cost)
    ranked = cost[order]
    descending = np.sort(points)[::-1]
    result = np.empty_like(points)
    result[order] = descending[np.searchsorted(ranked, ranked)]
    return result
