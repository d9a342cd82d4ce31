"""What an unknown capacity means: a resource without one is no limit, a node without any cannot be judged."""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Bools, Floats

NEUTRAL_SCORE = 50.0
"""What every node gets when nothing is known of any."""


def limited(capacity: AnyFloats) -> Bools:
    """Where a capacity is known and above 0, any shape; everywhere else it is no limit."""
    return np.asarray((capacity > 0) & (capacity < np.inf))  # NaN is neither


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


def neutral_score_where_unknown(score: Floats, known: Bools) -> Floats:
    """Scores of nodes, those that cannot be judged at the median of the others, or 50 if none can: (n_nodes,)."""
    if known.all():
        return score
    return np.where(known, score, np.median(score[known]) if known.any() else NEUTRAL_SCORE)
