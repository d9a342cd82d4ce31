"""Balance between the requested shares of any resources, each with a weight of its own.

kube-scheduler's BalancedAllocation (scores/balanced_allocation.py) is this with equal weights, truncated to integers;
its configuration refuses weights other than 1, so that an idle GPU costs no more than an idle core.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from cluster.predicted.unknown_capacity import limited
from scorer.scores import MAX_NODE_SCORE


def balance(requested: AnyFloats, allocatable: AnyFloats, weights: AnyFloats) -> Floats:
    """How close to each other the requested shares of a node's resources are: (n_nodes,) in [50, 100].

        b(x) = (1 - s) * 100,   s = weighted population standard deviation of min(requested / allocatable, 1)

    requested   : (n_nodes, n_kinds)
    allocatable : (n_nodes, n_kinds); a resource of which a node has none, or an unknown amount, is left out; what has
                  one resource or none is balanced
    weights     : (n_kinds,), 0 = not looked at
    """
    kinds = np.flatnonzero(weights > 0)
    if len(kinds) == 2 and limited(allocatable[:, kinds]).all():
        # What almost every node is asked, without the bookkeeping of missing resources: three times as fast.
        both: Ints | slice = slice(None) if len(weights) == 2 else kinds  # a slice is not copied
        first, second = np.minimum(requested[:, both] / allocatable[:, both], 1.0).T
        pair = _of_pair(*weights[kinds]) * np.abs(first - second)
        return np.asarray((1.0 - np.minimum(pair, 0.5)) * MAX_NODE_SCORE)
    shares, parts = [], []
    for kind in kinds:
        counted = limited(allocatable[:, kind])
        share = np.minimum(requested[:, kind] / np.where(counted, allocatable[:, kind], 1.0), 1.0)
        shares.append(np.where(counted, share, 0.0))
        parts.append(np.where(counted, weights[kind], 0.0))
    return np.asarray((1.0 - _deviation(shares, parts, len(allocatable))) * MAX_NODE_SCORE)


def balance_score(requested: AnyFloats, pod: AnyFloats, allocatable: AnyFloats, weights: AnyFloats) -> Floats:
    """The classic form (kube-scheduler before v1.34): balance of the node once the pod is there, (n_nodes,).

    pod : (n_kinds,) requests of the incoming pod; the other arguments as those of `balance`
    """
    return balance(requested + pod, allocatable, weights)


def balance_change_score(requested: AnyFloats, pod: AnyFloats, allocatable: AnyFloats, weights: AnyFloats) -> Floats:
    """What the pod does to the balance that is there (kube-scheduler from v1.34 on): (n_nodes,) in [50, 100].

        score = 50 + (50 + b(with pod) - b(without pod)) / 2

    75 = no difference. Arguments as those of `balance_score`.
    """
    change = balance(requested + pod, allocatable, weights) - balance(requested, allocatable, weights)  # -50..50
    return np.asarray(MAX_NODE_SCORE / 2 + (MAX_NODE_SCORE / 2 + change) / 2)


def _of_pair(a: float, b: float) -> float:
    """Factor of |x1 - x2|: with equal weights exactly upstream's 1/2, to the last bit."""
    return math.sqrt(a * b) / (a + b)


def _deviation(shares: list[Floats], parts: list[Floats], n_nodes: int) -> Floats:
    """Weighted population standard deviation over resources, of which a node counts those with a part above 0."""
    if len(shares) < 2:
        return np.zeros(n_nodes)
    n_counted = np.add.reduce([part > 0 for part in parts], dtype=np.int64)
    deviation = np.zeros(n_nodes)
    if (n_counted == 2).any():
        # sqrt(w1 w2) / (w1 + w2) * |x1 - x2|: with equal weights exactly upstream's |x1 - x2| / 2, to the last bit.
        for i, j in combinations(range(len(shares)), 2):
            both = (parts[i] > 0) & (parts[j] > 0)
            weight_sum = np.where(both, parts[i] + parts[j], 1.0)
            pair = np.sqrt(parts[i] * parts[j]) / weight_sum * np.abs(shares[i] - shares[j])
            deviation += np.where(both, pair, 0.0)
    if (n_counted > 2).any():
        weight_sum = np.maximum(np.add.reduce(parts), np.finfo(np.float64).tiny)
        mean = np.add.reduce([part * share for part, share in zip(parts, shares, strict=True)]) / weight_sum
        squares = [part * (share - mean) ** 2 for part, share in zip(parts, shares, strict=True)]
        deviation = np.where(n_counted > 2, np.sqrt(np.add.reduce(squares) / weight_sum), deviation)
    return np.asarray(np.minimum(deviation, 0.5))  # more is not possible, but for rounding
