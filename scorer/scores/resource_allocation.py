"""What kube-scheduler's scores of requests have in common: units, which resources count for a pod, their mean.

Source: kubernetes v1.36, pkg/scheduler/framework/plugins/noderesources/resource_allocation.go. Axis n_kinds: Kubernetes
resources in any order, except that CPU comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from cluster.predicted.unknown_capacity import limited

MILLICORES: Final = 1000.0
"""CPU (kind 0) is counted in these, all else in bytes and pieces."""

_ALWAYS_COUNTED = frozenset({"cpu", "memory", "ephemeral-storage"})

PerResource = Callable[[Ints, Ints], Ints]
"""(requested with the pod, allocatable > 0), each (n_nodes,) in whole units -> score of one resource, (n_nodes,)."""


def resource_weights(kinds: Sequence[str], weights: Mapping[str, float]) -> Floats:
    """Weights by resource name -> (n_kinds,); 0 = the resource is not looked at."""
    return np.array([weights.get(kind, 0.0) for kind in kinds], dtype=np.float64)


def weights_for_pod(kinds: Sequence[str], weights: AnyFloats, pod: AnyFloats) -> Floats:
    """Weights without the extended resources that the pod does not request: (n_kinds,).

    A node is neither full nor unbalanced for its idle GPUs when the pod asks for none.
    """
    native = np.array([kind in _ALWAYS_COUNTED for kind in kinds], dtype=bool)
    return np.where(native | (pod > 0), weights, 0.0)


def whole_units(amount: AnyFloats, kind: int) -> Ints:
    """A finite amount as kube-scheduler counts it: millicores of CPU (kind 0), bytes and pieces of all else."""
    return np.asarray(np.rint(amount * MILLICORES if kind == 0 else amount), dtype=np.int64)


def whole_capacity(allocatable: AnyFloats, kind: int) -> Ints:
    """The same of an allocatable amount; unknown (NaN or infinite) = 0."""
    return whole_units(np.where(limited(allocatable), allocatable, 0.0), kind)


def mean_over_resources(
    requested: AnyFloats, pod: AnyFloats, allocatable: AnyFloats, weights: AnyFloats | None, score: PerResource
) -> Ints:
    """Weighted mean of a score of each resource, truncated: (n_nodes,).

    requested   : (n_nodes, n_kinds) of the pods there
    pod         : (n_kinds,) of the incoming pod
    allocatable : (n_nodes, n_kinds); a resource of which a node has none, or an unknown amount (NaN or infinite), is
                  left out of its mean; a node without any scores 0
    weights     : (n_kinds,), None = all 1
    """
    n_nodes, n_kinds = allocatable.shape
    weights = np.ones(n_kinds) if weights is None else weights
    total, weight_sum = np.zeros(n_nodes), np.zeros(1)
    for kind in np.flatnonzero(weights > 0).tolist():
        capacity = whole_capacity(allocatable[:, kind], kind)
        counted = capacity > 0
        wanted = whole_units(requested[:, kind] + pod[kind], kind)
        if counted.all():  # as on almost every cluster
            total += weights[kind] * score(wanted, capacity)
            weight_sum = weight_sum + weights[kind]
            continue
        total += np.where(counted, weights[kind] * score(wanted, np.where(counted, capacity, 1)), 0.0)
        weight_sum = weight_sum + np.where(counted, weights[kind], 0.0)
    # Whole numbers below 2^53 are exact in float64, so this truncates as integer division does.
    return np.floor(total / np.where(weight_sum > 0, weight_sum, 1.0)).astype(np.int64)
