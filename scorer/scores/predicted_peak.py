"""Predicted peaks of a few nodes: the exact objective, where `energy` has already picked who is worth a closer look.

    cost = sum_r w_r C[n, r] / mean C_r * sum_points weight * ((x + v / C)^4 - x^4),    x = predicted load / C

The fourth power follows the highest points almost as a maximum would, and still sees the second-highest hour; the
maximum itself is blind to everything below it. Weighing by capacity makes nodes of all sizes aim for the same share.
Of the nodes with the lowest energy 16 are looked at: all of them gave no better placement, 8 a slightly worse one
(docs/placement.md).
"""

from __future__ import annotations

import numpy as np

from forecast.arrays import AnyFloats, Floats, Floats32, Ints
from scorer.scores.capacity import any_limit, limited, neutral_where_unknown

__all__ = ["PredictedLoad", "power_growth"]


def power_growth(
    share: AnyFloats,
    pod_share: AnyFloats,
    point_weights: AnyFloats,
    node_weights: AnyFloats,
) -> Floats:
    """Growth of the weighted sum of fourth powers when the pod lands: (n_nodes,), lower is better.

    share         : (n_nodes, n_resources, n_points) predicted load as share of capacity
    pod_share     : (n_nodes, n_resources, n_points) what the pod adds to it
    point_weights : (n_points,)
    node_weights  : (n_nodes, n_resources) w_r * C[n, r] / mean C_r; 0 where capacity is no limit
    """
    # With d = b^2 - a^2 = v (2 a + v) it is b^4 - a^4 = d (2 a^2 + d): no power of a large array, no cancellation.
    d = pod_share * (2 * share + pod_share)
    growth = (d * (2 * share * share + d)) @ point_weights  # (n_nodes, n_resources)
    return np.asarray((growth * node_weights).sum(axis=1))


class PredictedLoad:
    """Predicted load of every node as share of its capacity, kept up to date as pods come and go.

    Held in float32: the time goes into reading these arrays, and a forecast is not known to seven digits.
    """

    def __init__(
        self,
        usage: AnyFloats,
        point_weights: AnyFloats,
        base: AnyFloats,
        capacity: AnyFloats,
        resource_weights: AnyFloats,
    ) -> None:
        """
        usage            : (n_services, n_resources, n_points) of one pod
        point_weights    : (n_points,)
        base             : (n_nodes, n_resources, n_points) load beside the pods that will be added
        capacity         : (n_nodes, n_resources); NaN or 0 = not a limit
        resource_weights : (n_resources,)
        """
        limits = limited(capacity)
        known = np.where(limits, np.nan_to_num(capacity), 0.0)
        mean = known.sum(axis=0) / np.maximum(limits.sum(axis=0), 1)
        self._known = any_limit(capacity)  # (n_nodes,)
        self._usage = usage.astype(np.float32)
        per_capacity = np.where(limits, 1 / np.where(limits, known, 1.0), 0.0)
        self._per_capacity = per_capacity.astype(np.float32)  # (n_nodes, n_resources)
        self._weights = np.where(limits, resource_weights * known / np.where(mean > 0, mean, 1.0), 0.0)
        self._base = self._as_share(base)
        self.share = self._base.copy()  # (n_nodes, n_resources, n_points)
        self.set_weights(point_weights)

    def peak_with(self, service: int, resource: int) -> Floats:
        """At most this share of a resource is used at the peak with one more pod of `service`: (n_nodes,).

        The sum of both peaks, which need not coincide; 0 where capacity is no limit.
        """
        return np.asarray(
            self._peak[:, resource] + self._usage_peak[service, resource] * self._per_capacity[:, resource]
        )

    def growth(self, service: int, nodes: Ints) -> Floats:
        """Cost of one more pod of `service` on each of `nodes`: (len(nodes),), lower is better.

        A node without any known capacity costs as much as the median of the others among `nodes`.
        """
        pod = self._usage[service] * self._per_capacity[nodes][:, :, None]
        growth = power_growth(self.share[nodes], pod, self._point_weights, self._weights[nodes])
        return neutral_where_unknown(growth, self._known[nodes])

    def add(self, service: int, node: int, pods: int = 1) -> None:
        """`pods` more pods of `service` on `node`; negative takes them away."""
        self.share[node] += pods * self._usage[service] * self._per_capacity[node][:, None]
        self._peak[node] = self._highest(self.share[node])

    def set_base(self, base: AnyFloats) -> None:
        """Replace the load beside the added pods: (n_nodes, n_resources, n_points)."""
        new = self._as_share(base)
        self.share += new - self._base
        self._base = new
        self._peak = self._highest(self.share)

    def set_weights(self, point_weights: AnyFloats) -> None:
        """Weigh the points anew, (n_points,): 0 for those that are over, which then are no peak either."""
        self._point_weights = np.asarray(point_weights, dtype=np.float32)
        self._counted = np.flatnonzero(self._point_weights > 0)
        self._peak = self._highest(self.share)  # (n_nodes, n_resources)
        self._usage_peak = self._highest(self._usage)  # (n_services, n_resources)

    def _highest(self, by_point: Floats32) -> Floats32:
        """The highest of the points that count: (..., n_points) -> (...)."""
        return np.asarray(by_point[..., self._counted].max(axis=-1))

    def _as_share(self, load: AnyFloats) -> Floats32:
        """(n_nodes, n_resources, n_points) in base units -> share of capacity, 0 where that is no limit."""
        return np.asarray(load * self._per_capacity[:, :, None], dtype=np.float32)
