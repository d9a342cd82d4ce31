"""BalancedAllocation: prefer nodes on which the pod brings CPU and memory requests closer together.

Source: kubernetes v1.36, pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go. Since v1.36 the score is
a *change*: what the pod does to the balance, not the balance that is there; a neutral pod gets 75.
"""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from cluster.predicted.unknown_capacity import limited
from scorer.scores.resource_allocation import MILLICORES
from scorer.scores.weighted_balance import balance


def balanced_allocation_score(
    requested: AnyFloats, pod: AnyFloats, allocatable: AnyFloats, *, of_change: bool = True
) -> Ints:
    """Score nodes by how much the pod evens out the requested shares of their resources.

        b(x)  = int((1 - s) * 100), s = standard deviation over resources of min(requested / allocatable, 1)
        score = 50 + (50 + b(with pod) - b(without pod)) / 2

    With two resources s = |f1 - f2| / 2. Until v1.35 (of_change false): score = b(with pod), in [50, 100] as well.

    requested   : (n_nodes, n_kinds) true requests of the pods there, CPU cores, memory bytes and others
    pod         : (n_kinds,) true requests of the incoming pod
    allocatable : (n_nodes, n_kinds); a resource of which a node has none is left out
    Returns (n_nodes,) in [50, 100]; 0 everywhere for a pod without requests, which upstream does not score.
    """
    if not (pod > 0).any():
        return np.zeros(len(allocatable), dtype=np.int64)
    capacity = _whole(np.where(limited(allocatable), allocatable, 0.0))
    equal = np.ones(allocatable.shape[1])
    with_pod = balance(_whole(requested + pod), capacity, equal).astype(np.int64)
    if not of_change:
        return with_pod
    without = balance(_whole(requested), capacity, equal).astype(np.int64)
    return np.asarray(50 + (50 + with_pod - without) // 2)


def _whole(amounts: AnyFloats) -> Floats:
    """(n_nodes, n_kinds) in whole units: shares come out to the same last bit as upstream."""
    units = np.ones(amounts.shape[1])
    units[:1] = MILLICORES
    return np.asarray(np.rint(amounts * units))
