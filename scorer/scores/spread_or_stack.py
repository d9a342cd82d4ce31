"""Spread while the cluster has room, stack when it fills up, decided by the water level of the pool of nodes.

Spreading wastes nothing while nodes are half empty, and leaves no node with room for a large pod once they are full;
stacking is the other way round. Between two levels the preference goes over linearly, and on the way back it holds on
for a while (hysteresis), so that pods that come and go at a level do not turn it over and over.
"""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Floats
from cluster.predicted.unknown_capacity import limited
from scorer.scores import MAX_NODE_SCORE


def spread_or_stack_score(
    requested: AnyFloats, pod: AnyFloats, allocatable: AnyFloats, weights: AnyFloats, stack_weight: float
) -> Floats:
    """Least allocated and most allocated, blended.

        share = weighted mean over resources of min(requested with pod / allocatable, 1)
        score = 100 * ((1 - stack_weight) * (1 - share) + stack_weight * share)

    requested    : (n_nodes, n_kinds) of the pods there
    pod          : (n_kinds,)
    allocatable  : (n_nodes, n_kinds); a resource of which a node has none, or an unknown amount, is left out
    weights      : (n_kinds,)
    stack_weight : from cluster.water_level.next_stack_weight
    Returns (n_nodes,) in [0, 100], higher is better; a node without any of the resources counts as half full, 50.
    """
    n_nodes = len(allocatable)
    total, weight_sum = np.zeros(n_nodes), np.zeros(n_nodes)
    for kind in np.flatnonzero(weights > 0):
        counted = limited(allocatable[:, kind])
        share = np.minimum((requested[:, kind] + pod[kind]) / np.where(counted, allocatable[:, kind], 1.0), 1.0)
        total += np.where(counted, weights[kind] * share, 0.0)
        weight_sum += np.where(counted, weights[kind], 0.0)
    known = weight_sum > 0
    share = np.where(known, total / np.where(known, weight_sum, 1.0), 0.5)
    return np.asarray(MAX_NODE_SCORE * ((1.0 - stack_weight) * (1.0 - share) + stack_weight * share))
