"""RequestedToCapacityRatio: any preference for how full a node is by requests, as a line through given points.

Source: kubernetes v1.36, pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go and
helper/shape_score.go. Integer arithmetic as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from base.arrays import AnyFloats, Ints
from scorer.scores import MAX_NODE_SCORE
from scorer.scores.resource_allocation import whole_capacity, whole_units
from scorer.scores.score_settings import BIN_PACKING, ShapePoint

_MAX_UTILIZATION = 100
_MAX_SHAPE_SCORE = 10


def broken_line(points: Sequence[tuple[int, int]], at: Ints) -> Ints:
    """Straight lines between points, level before the first and after the last; each division truncates towards 0.

    points : (position, value), positions rising
    at     : any shape, whole numbers
    """
    result = np.full(at.shape, points[-1][1], dtype=np.int64)
    for (left, low), (right, high) in reversed(list(pairwise(points))):
        # Go truncates towards 0, numpy's // towards minus infinity.
        rise = (high - low) * (at - left)
        slope = np.sign(rise) * (np.abs(rise) // (right - left))
        result = np.where(at <= right, low + slope, result)
    return np.asarray(np.where(at <= points[0][0], points[0][1], result), dtype=np.int64)


def requested_to_capacity_ratio_score(
    requested: AnyFloats,
    pod: AnyFloats,
    allocatable: AnyFloats,
    weights: AnyFloats | None = None,
    shape: Sequence[ShapePoint] = BIN_PACKING,
) -> Ints:
    """Score nodes by the utilization they reach with the pod.

        per resource: shape(requested * 100 / allocatable) * 10, utilization 100 where requested > allocatable
        score = weighted mean over the resources that score more than 0, rounded

    A resource that scores 0 does not pull the mean down, it is left out of it: with a rising shape the first request
    for an unused resource can lower the score. That is upstream's rule.

    Arguments as those of `least_allocated_score`. Returns (n_nodes,) in [0, 100], higher is better.
    """
    n_nodes, n_kinds = allocatable.shape
    weights = np.ones(n_kinds) if weights is None else weights
    points = [(utilization, score * (MAX_NODE_SCORE // _MAX_SHAPE_SCORE)) for utilization, score in shape]
    total, weight_sum = np.zeros(n_nodes), np.zeros(n_nodes)
    for kind in np.flatnonzero(weights > 0).tolist():
        capacity = whole_capacity(allocatable[:, kind], kind)
        wanted = np.minimum(whole_units(requested[:, kind] + pod[kind], kind), capacity)
        per_resource = broken_line(points, wanted * _MAX_UTILIZATION // np.where(capacity > 0, capacity, 1))
        counted = (capacity > 0) & (per_resource > 0)
        total += np.where(counted, weights[kind] * per_resource, 0.0)
        weight_sum += np.where(counted, weights[kind], 0.0)
    mean = total / np.where(weight_sum > 0, weight_sum, 1.0)
    return np.floor(mean + 0.5).astype(np.int64)  # halves upwards, as Go's math.Round for positive numbers
