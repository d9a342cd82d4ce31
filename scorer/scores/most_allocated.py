"""MostAllocated: the fuller a node is by requests, the better, so that other nodes stay empty.

Source: kubernetes v1.36, pkg/scheduler/framework/plugins/noderesources/most_allocated.go. Integer arithmetic as there.
"""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Ints
from scorer.scores import MAX_NODE_SCORE
from scorer.scores.resource_allocation import mean_over_resources


def most_allocated_score(
    requested: AnyFloats, pod: AnyFloats, allocatable: AnyFloats, weights: AnyFloats | None = None
) -> Ints:
    """Score nodes by the share of their resources requested once the pod is there.

        score = mean over resources of min(requested, allocatable) * 100 / allocatable

    Arguments as those of `least_allocated_score`. Returns (n_nodes,) in [0, 100], higher is better.
    """
    return mean_over_resources(requested, pod, allocatable, weights, _requested)


def _requested(wanted: Ints, capacity: Ints) -> Ints:
    return np.asarray(np.minimum(wanted, capacity) * MAX_NODE_SCORE // capacity)
