"""LeastAllocated: the emptier a node is by requests, the better. What kube-scheduler does by default.

Source: kubernetes v1.36, pkg/scheduler/framework/plugins/noderesources/least_allocated.go. Integer arithmetic as there:
a node half a percent emptier than another may score the same, and ties are broken at random.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from scorer.scores import MAX_NODE_SCORE
from scorer.scores.resource_allocation import mean_over_resources

UNREQUESTED: Final = (0.1, 200.0 * 1024 * 1024)
"""What a container without a request counts as: 100 millicores, 200 MiB (pkg/scheduler/util/pod_resources.go)."""


def nonzero_requests(requests: AnyFloats) -> Floats:
    """Requests as this score counts them: nothing requested (0 or NaN) becomes the default. (..., 2) -> (..., 2)."""
    known = np.nan_to_num(np.asarray(requests, dtype=np.float64))
    return np.where(known > 0, known, np.array(UNREQUESTED))


def least_allocated_score(
    requested: AnyFloats, pod: AnyFloats, allocatable: AnyFloats, weights: AnyFloats | None = None
) -> Ints:
    """Score nodes by the share of their resources left unrequested once the pod is there.

        score = mean over resources of (allocatable - requested) * 100 / allocatable, 0 where requested > allocatable

    requested   : (n_nodes, n_kinds) of the pods there; CPU cores, memory bytes (both by `nonzero_requests`), others
    pod         : (n_kinds,) the incoming pod, likewise
    allocatable : (n_nodes, n_kinds); a resource of which a node has none, or an unknown amount (NaN or infinite), is
                  left out of its mean
    weights     : (n_kinds,), None = all 1
    Returns (n_nodes,) in [0, 100], higher is better.
    """
    return mean_over_resources(requested, pod, allocatable, weights, _unrequested)


def _unrequested(wanted: Ints, capacity: Ints) -> Ints:
    return np.asarray(np.maximum(capacity - wanted, 0) * MAX_NODE_SCORE // capacity)
