"""Scores -> points of the extender protocol: whole numbers around 0, of a fixed size.

    points = round((score - median of the scores) / score_per_point)

kube-scheduler adds points x weight x 10 to the sum of its own scores, which is at most 1,200, and clamps nothing
(v1.36, pkg/scheduler/schedule_one.go). A node that is missing from the reply gets 0, so 0 is neutral: better nodes are
above it, worse ones below. The size of a point does not depend on the request: where all nodes are nearly equal, all
get 0 and kube-scheduler's own ranking stands.
"""

from __future__ import annotations

import numpy as np

from base.arrays import Bools, Floats, Ints


def points_of(scores: Floats, known: Bools, score_per_point: float) -> Ints:
    """Points of nodes: (n_nodes,), 0 for those that are not known.

    scores : (n_nodes,) higher is better, of any range
    known  : (n_nodes,) something is known of the node
    score_per_point : with the default weights 1.0 = one percent of a node's capacity at its predicted peak
    """
    if not known.any():
        return np.zeros(len(scores), dtype=np.int64)
    if known.all():
        return np.rint((scores - _median(scores)) / score_per_point).astype(np.int64)
    differences = (scores - _median(scores[known])) / score_per_point
    return np.where(known, np.rint(differences), 0.0).astype(np.int64)


def _median(values: Floats) -> float:
    """As np.median, which also looks for NaN, at several times the cost; there is none here."""
    middle = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, middle)[middle])
    parted = np.partition(values, (middle - 1, middle))
    return float((parted[middle - 1] + parted[middle]) / 2)


def shortened(points: Ints, longest: int) -> Ints:
    """Positions of the nodes to name in the reply, at most `longest`: the best and the worst; the others get 0.

    Each side has half of the places, and what the other one leaves. Nodes with 0 points need no place: they get 0 by
    not being named. Kept nodes keep their points, so none is ever ranked above one that is better.
    """
    named = np.flatnonzero(points)
    if longest <= 0 or len(named) <= longest:
        return named
    better, worse = named[points[named] > 0], named[points[named] < 0]
    half = longest // 2
    n_better = min(len(better), max(half, longest - len(worse)))
    n_worse = min(len(worse), longest - n_better)
    # Stable: among equals the first in the order asked, so that replicas agree.
    best = better[np.argsort(-points[better], kind="stable")[:n_better]]
    worst = worse[np.argsort(points[worse], kind="stable")[:n_worse]]
    return np.sort(np.concatenate([best, worst]))
