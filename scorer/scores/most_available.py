"""MostAvailable: the more a node really has left right now, the better.

Left = VirtualAvailable: capacity - usage at the last metric - VirtualRequest of the pods that metric has not yet
(fully) seen, so that pods placed in quick succession do not all go to the node that was idle at the last scrape. It
looks at this minute only, which is why it has no weight by default beside a forecast (docs/placement.md).
"""

from __future__ import annotations

import numpy as np

from forecast.arrays import AnyFloats, Bools, Floats
from scorer.scores import MAX_NODE_SCORE
from scorer.scores.capacity import limited

__all__ = ["available_is_known", "most_available_score"]


def available_is_known(available: AnyFloats, capacity: AnyFloats, weights: AnyFloats) -> Bools:
    """Whether a node can be judged at all: (n_nodes,) bool."""
    return np.asarray((limited(capacity) & np.isfinite(available) & (weights > 0)).any(axis=1))


def most_available_score(
    available: AnyFloats, virtual_request: AnyFloats, capacity: AnyFloats, weights: AnyFloats
) -> Floats:
    """Score nodes by what is left of them once the pod is there.

        score = 100 * weighted mean over resources of clip((available - virtual_request) / capacity, 0, 1)

    available       : (n_nodes, n_resources) VirtualAvailable in base units, may be below 0; NaN = nobody measures it
    virtual_request : (n_resources,) of the incoming pod, NaN = nothing known, counts as 0
    capacity        : (n_nodes, n_resources); NaN or 0 = no limit
    weights         : (n_resources,)
    A resource that is no limit or not measured is left out of a node's mean.
    Returns (n_nodes,) in [0, 100], higher is better; 50 for a node of which nothing is known.
    """
    n_nodes = len(capacity)
    total, weight_sum = np.zeros(n_nodes), np.zeros(n_nodes)
    pod = np.nan_to_num(virtual_request)
    for resource in np.flatnonzero(weights > 0):
        counted = limited(capacity[:, resource]) & np.isfinite(available[:, resource])
        left = (available[:, resource] - pod[resource]) / np.where(counted, capacity[:, resource], 1.0)
        total += np.where(counted, weights[resource] * np.minimum(np.maximum(left, 0.0), 1.0), 0.0)
        weight_sum += np.where(counted, weights[resource], 0.0)
    known = weight_sum > 0
    return np.asarray(MAX_NODE_SCORE * np.where(known, total / np.where(known, weight_sum, 1.0), 0.5))
