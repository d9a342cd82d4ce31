"""MostAvailable: the more a node really has left right now, the better.

Left = VirtualAvailable: capacity - usage at the last metric - VirtualRequest of the pods that metric has not yet
(fully) seen, so that pods placed in quick succession do not all go to the node that was idle at the last scrape. It
looks at this minute only, which is why it has no weight by default with a forecast (docs/understand/placement.md).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from cluster.predicted.unknown_capacity import limited
from scorer.scores import MAX_NODE_SCORE
from scorer.scores.predicted_peak_score import points_of_share

_MEAN: Final = 0.05
"""Weight of the mean over resources against the scarcest one. It decides between nodes that are equally short of
theirs, and outweighs at most six points of the scarcest.
"""


def available_is_known(available: AnyFloats, capacity: AnyFloats, weights: AnyFloats) -> Bools:
    """Whether a node can be judged at all: (n_nodes,) bool."""
    return np.asarray((limited(capacity) & np.isfinite(available) & (weights > 0)).any(axis=1))


def most_available_score(
    available: AnyFloats, virtual_request: AnyFloats, capacity: AnyFloats, weights: AnyFloats
) -> Floats:
    """Score nodes by what is left of their scarcest resource once the pod is there.

        share_r = 1 - (available_r - virtual_request_r) / capacity_r
        score   = 0.95 points(max_r share_r) + 0.05 * weighted mean over r of points(share_r)

    points: `points_of_share`, 100 (1 - share) up to 0.9 and an exponential tail beyond, so that nodes over their
    capacity still differ. A pod runs as fast as its scarcest resource lets it, so idle disks make up for no missing
    core: the dominant resource of Ghodsi et al. 2011 ("Dominant Resource Fairness"), which Koordinator weighs in the
    same way (LoadAware, dominantResourceWeight). A scarce resource counts whether or not the pod's virtual request
    names it: 0 mostly means that the amount is not known, and a node without disk bandwidth starts containers slowly.

    available       : (n_nodes, n_resources) VirtualAvailable in base units, may be below 0; NaN = not measured
    virtual_request : (n_resources,) of the incoming pod, NaN = nothing known, counts as 0
    capacity        : (n_nodes, n_resources); NaN or 0 = no limit
    weights         : (n_resources,) 0 = the resource does not count; weights of the others enter the mean
    A resource that is no limit or not measured is left out.
    Returns (n_nodes,) in [0, 100], higher is better; 50 for a node of which nothing is known.
    """
    n_nodes = len(capacity)
    worst, total, weight_sum = np.zeros(n_nodes), np.zeros(n_nodes), np.zeros(n_nodes)
    pod = np.nan_to_num(virtual_request)
    for resource in np.flatnonzero(weights > 0):
        counted = limited(capacity[:, resource]) & np.isfinite(available[:, resource])
        left = (available[:, resource] - pod[resource]) / np.where(counted, capacity[:, resource], 1.0)
        share = np.where(counted, np.maximum(1.0 - left, 0.0), 0.0)
        worst = np.maximum(worst, share)
        total += np.where(counted, weights[resource] * points_of_share(share), 0.0)
        weight_sum += np.where(counted, weights[resource], 0.0)
    known = weight_sum > 0
    score = (1 - _MEAN) * points_of_share(worst) + _MEAN * total / np.where(known, weight_sum, 1.0)
    return np.where(known, score, MAX_NODE_SCORE / 2)
