"""What an unknown capacity means to a cost: a resource without one is no limit, a node without any cannot be judged."""

from __future__ import annotations

import numpy as np

from forecast.arrays import AnyFloats, Bools, Floats

__all__ = ["any_limit", "limited", "neutral_where_unknown"]


def limited(capacity: AnyFloats) -> Bools:
    """Where a capacity is known and above 0, any shape; everywhere else it is no limit."""
    return np.asarray(np.isfinite(capacity) & (np.nan_to_num(capacity) > 0))


def any_limit(capacity: AnyFloats) -> Bools:
    """Whether a node has the capacity of at least one resource: (n_nodes, n_resources) -> (n_nodes,)."""
    return np.asarray(limited(capacity).any(axis=1))


def neutral_where_unknown(cost: Floats, known: Bools) -> Floats:
    """Costs of nodes, those that cannot be judged at the median of the others: (n_nodes,).

    Without any capacity a node would cost nothing, be the best for every pod and take them all.

    cost  : (n_nodes,)
    known : (n_nodes,) from `any_limit`
    """
    if known.all() or not known.any():
        return cost
    return np.where(known, cost, np.median(cost[known]))
