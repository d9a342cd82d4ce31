"""BalancedAllocation: prefer nodes on which the pod brings CPU and memory requests closer together.

Source: kubernetes v1.36, pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go. Since v1.34 the score is
a *change*: what the pod does to the balance, not the balance that is there; a neutral pod gets 75.
"""

from __future__ import annotations

import numpy as np

from forecast.arrays import AnyFloats, Floats, Ints
from scorer.scores import MAX_NODE_SCORE

__all__ = ["balanced_allocation_score"]


def balanced_allocation_score(requested: AnyFloats, pod: AnyFloats, allocatable: AnyFloats) -> Ints:
    """Score nodes by how much the pod evens out the requested shares of CPU and memory.

        b(x)  = int((1 - s) * 100), s = standard deviation over resources of min(requested / allocatable, 1)
        score = 50 + (50 + b(with pod) - b(without pod)) / 2

    With two resources s = |f1 - f2| / 2.

    requested   : (n_nodes, 2) true requests of the pods there, CPU cores and memory bytes
    pod         : (2,) true requests of the incoming pod
    allocatable : (n_nodes, 2); a resource of which a node has none is left out
    Returns (n_nodes,) in [50, 100]; 0 everywhere for a pod without requests, which upstream does not score.
    """
    if not (pod > 0).any():
        return np.zeros(len(allocatable), dtype=np.int64)
    change = _balance(requested + pod, allocatable) - _balance(requested, allocatable)  # within -50..50
    return np.asarray(50 + (50 + change) // 2)


def _balance(requested: AnyFloats, allocatable: AnyFloats) -> Ints:
    """b(x) of each node: (n_nodes,)."""
    counted = allocatable > 0
    share: Floats = np.minimum(requested / np.where(counted, allocatable, 1.0), 1.0)
    # One resource alone is always balanced.
    spread = np.where(counted.all(axis=1), np.abs(share[:, 0] - share[:, 1]) / 2, 0.0)
    return ((1.0 - spread) * MAX_NODE_SCORE).astype(np.int64)
