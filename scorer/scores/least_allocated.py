"""LeastAllocated: the emptier a node is by requests, the better. What kube-scheduler does by default.

Source: kubernetes v1.36, pkg/scheduler/framework/plugins/noderesources/least_allocated.go. Integer arithmetic as there:
a node half a percent emptier than another may score the same, and ties are broken at random.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from forecast.arrays import AnyFloats, Floats, Ints
from scorer.scores import MAX_NODE_SCORE

__all__ = ["UNREQUESTED", "least_allocated_score", "nonzero_requests"]

UNREQUESTED: Final = (0.1, 200.0 * 1024 * 1024)
"""What a container without a request counts as: 100 millicores, 200 MiB (pkg/scheduler/util/pod_resources.go)."""

_UNITS = np.array([1000.0, 1.0])  # upstream counts millicores and bytes


def nonzero_requests(requests: AnyFloats) -> Floats:
    """Requests as this score counts them: nothing requested (0 or NaN) becomes the default. (..., 2) -> (..., 2)."""
    known = np.nan_to_num(np.asarray(requests, dtype=np.float64))
    return np.where(known > 0, known, np.array(UNREQUESTED))


def least_allocated_score(requested: AnyFloats, pod: AnyFloats, allocatable: AnyFloats) -> Ints:
    """Score nodes by the share of CPU and memory left unrequested once the pod is there.

        score = mean over resources of (allocatable - requested) * 100 / allocatable, 0 where requested > allocatable

    requested   : (n_nodes, 2) CPU cores and memory bytes of the pods there, by `nonzero_requests`
    pod         : (2,) the incoming pod, by `nonzero_requests`
    allocatable : (n_nodes, 2); a resource of which a node has none, or an unknown amount (NaN or infinite), is left
                  out of its mean
    Returns (n_nodes,) in [0, 100], higher is better.
    """
    capacity = np.rint(np.where(np.isfinite(allocatable), allocatable, 0.0) * _UNITS).astype(np.int64)
    wanted = np.rint((requested + pod) * _UNITS).astype(np.int64)
    counted = capacity > 0
    free = np.where(wanted > capacity, 0, capacity - wanted)
    per_resource = free * MAX_NODE_SCORE // np.where(counted, capacity, 1)  # (n_nodes, 2)
    total = np.where(counted, per_resource, 0).sum(axis=1)
    return np.asarray(total // np.maximum(counted.sum(axis=1), 1))
