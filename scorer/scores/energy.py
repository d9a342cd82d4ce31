"""Energy of the predicted load: a cost of placing a pod that is as cheap to read as LeastAllocated.

The capacity-weighted energy of a cluster is sum over nodes, resources and points in time of C x^2, x = load / C: it
grows fastest where a pod's peak meets other peaks, and it evens out *shares* on nodes of unequal size (the sum of
load^2 alone would let a node twice as large run at twice the share). One more pod with usage u on node n adds

    growth[n] = sum_r w_r (2 <load_n, u>_r + <u, u>_r) / (C[n, r] * mean C_r)

with <a, b>_r an inner product over all points in time. Half of it over sum_r w_r |u|_r / mean C_r is a share of
capacity: the mean share of the node over the coming days, weighted by when and how much the pod uses, the pod itself
counted half (the mean of before and after). `cluster.predicted.load` keeps it up to date; here is the definition.
"""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from cluster.predicted.unknown_capacity import any_limit, limited, neutral_where_unknown


def energy_growth(
    load: AnyFloats, usage: AnyFloats, point_weights: AnyFloats, capacity: AnyFloats, resource_weights: AnyFloats
) -> Floats:
    """Growth of energy when a pod lands, straight from the curves: (n_nodes,), lower is better.

    load             : (n_nodes, n_resources, n_points) predicted without the pod, base units
    usage            : (n_resources, n_points) of the pod
    point_weights    : (n_points,)
    capacity         : (n_nodes, n_resources); NaN or 0 = not a limit, contributes nothing. A node without any costs
                       as much as the median of the others
    resource_weights : (n_resources,)
    """
    limits = limited(capacity)
    known = np.where(limits, np.nan_to_num(capacity), 0.0)
    mean = known.sum(axis=0) / np.maximum(limits.sum(axis=0), 1)  # (n_resources,)
    factor = np.where(limits, resource_weights / np.where(limits, known * mean, 1.0), 0.0)
    growth = ((2 * load + usage) * usage * point_weights).sum(axis=2)  # (n_nodes, n_resources)
    return neutral_where_unknown((factor * growth).sum(axis=1), any_limit(capacity))


def best_nodes(cost: Floats, feasible: Bools, n_best: int) -> Ints:
    """The `n_best` feasible nodes of lowest cost, in no particular order; of equal ones the first."""
    among = np.flatnonzero(feasible)
    if len(among) <= n_best:
        return among
    costs = cost[among]
    limit = np.partition(costs, n_best - 1)[n_best - 1]
    below = among[costs < limit]
    return np.concatenate([below, among[costs == limit][: n_best - len(below)]])
