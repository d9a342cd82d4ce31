"""What a pod can use at most, whatever it requests or declares: what its node has.

Any client may write any quantity into a pod. kube-scheduler even binds one that requests 1e18 cores: its sums overflow.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from forecast.resources import RESOURCES

LARGEST: Final = np.array([1e6 if resource.unit == "cores" else 1e15 for resource in RESOURCES])
"""More of a resource than any machine has: for pods of clusters of which no capacity is known."""


def largest_node(capacity: AnyFloats, otherwise: AnyFloats = LARGEST) -> Floats:
    """The most of each resource that a node has: (n_resources,), finite.

    capacity  : (n_nodes, n_resources), NaN = unknown
    otherwise : (n_resources,) of a resource that is known of no node
    """
    most = np.fmax.reduce(capacity, axis=0, initial=np.nan)
    return np.where(np.isfinite(most), most, otherwise)


def bounded_by_nodes(requests: Floats, capacity: Floats, node: Ints | None = None) -> Floats:
    """Requests as far as a node can serve them: (n_pods, n_resources), NaN as they were.

    requests : (n_pods, n_resources)
    capacity : (n_nodes, n_resources), NaN = unknown
    node     : (n_pods,) row of the pod's node, -1 = none; None = none is known. Such a pod may have the largest node
    """
    most = np.broadcast_to(largest_node(capacity, LARGEST[: capacity.shape[1]]), requests.shape)
    if node is not None and len(capacity):
        own = np.where((node >= 0)[:, None], capacity[node], np.nan)
        most = np.where(np.isfinite(own), own, most)
    return np.minimum(requests, most)
