"""Energy of the predicted load: a cost of placing a pod that is read from a table, whatever the number of slots.

The capacity-weighted energy of a cluster is sum over nodes, resources and points in time of C x^2, x = load / C: it
grows fastest where a pod's peak meets other peaks, and it evens out *shares* on nodes of unequal size (the sum of x^2
alone would let a node twice as large run at twice the share). Putting one more pod of service s on node n adds

    sum_r w_r (2 G_r[n, s] + K_r[s, s] + 2 <base_n, u_s>_r) / (C[n, r] * mean C_r)

with K_r[a, b] = <u_a, u_b>_r, an inner product over all points, and G_r[n, s] = sum of K_r[p, s] over the pods p on n.
Expected energy under forecast errors only changes the diagonal: shared errors of a service add n^2 s^2 on a node, so
their variance joins K_r[s, s]; own errors add n s^2 and join the last term alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forecast.arrays import AnyFloats, Bools, Floats, Ints
from scorer.scores.capacity import any_limit, limited, neutral_where_unknown

__all__ = ["EnergyTable", "ServiceCurves", "best_nodes", "energy_growth"]


@dataclass(frozen=True, slots=True)
class ServiceCurves:
    """What one pod of each service is expected to use.

    A point is a slot of one of several curves that could come (`weights` sums to 1 over the curves of a slot, or so).

    usage           : (n_services, n_resources, n_points) base units, finite
    weights         : (n_points,)
    own_variance    : (n_services, n_resources) weighted sum over points of the error variance of a single pod
    shared_variance : (n_services, n_resources) the same for the error that all pods of the service have in common
    """

    usage: Floats
    weights: Floats
    own_variance: Floats
    shared_variance: Floats


def energy_growth(
    counts: AnyFloats,
    service: int,
    curves: ServiceCurves,
    base: AnyFloats,
    capacity: AnyFloats,
    resource_weights: AnyFloats,
) -> Floats:
    """The definition, straight from the curves: growth of expected energy when a pod of `service` lands. (n_nodes,).

    counts           : (n_nodes, n_services) pods there already
    base             : (n_nodes, n_resources, n_points) load beside these pods
    capacity         : (n_nodes, n_resources); NaN or 0 = not a limit, contributes nothing. A node without any costs
                       as much as the median of the others
    resource_weights : (n_resources,)
    """
    factor = _factor(capacity, resource_weights)  # (n_nodes, n_resources)
    load = np.einsum("ns,srp->nrp", counts, curves.usage) + base
    pod = curves.usage[service]
    growth = ((2 * load + pod) * pod * curves.weights).sum(axis=2)  # (n_nodes, n_resources)
    growth += curves.own_variance[service] + (2 * counts[:, service, None] + 1) * curves.shared_variance[service]
    return neutral_where_unknown((factor * growth).sum(axis=1), any_limit(capacity))


class EnergyTable:
    """Energy growth of every node for the services being scheduled, kept up to date as pods come and go.

    Only services asked for get a column; a landing pod then adds one number per column and resource, and a score is
    the reading of a column: O(n_nodes x n_resources). A column is made when first read, from the counts.
    """

    def __init__(
        self, curves: ServiceCurves, base: AnyFloats, capacity: AnyFloats, resource_weights: AnyFloats
    ) -> None:
        n_services, n_resources = curves.usage.shape[:2]
        n_nodes = capacity.shape[0]
        self._curves = curves
        self._base = base
        self._weights = curves.weights
        self._factor = _factor(capacity, resource_weights)  # (n_nodes, n_resources)
        self._known = any_limit(capacity)  # (n_nodes,)
        self._counts = np.zeros((n_nodes, n_services))
        self._column: dict[int, int] = {}
        # Axes: column, then as in the formula. Grown by doubling.
        self._K = np.zeros((8, n_resources, n_services))
        self._G = np.zeros((8, n_resources, n_nodes))
        self._with_base: dict[int, Floats] = {}

    @property
    def counts(self) -> Floats:
        """(n_nodes, n_services) pods on each node."""
        return self._counts

    def growth(self, service: int) -> Floats:
        """What a pod of `service` would add on each node: (n_nodes,), lower is better."""
        column = self._column.get(service)
        if column is None:
            column = self._add_column(service)
        if (with_base := self._with_base.get(service)) is None:
            weighted = self._curves.usage[service] * self._weights
            with_base = np.einsum("nrp,rp->nr", self._base, weighted)
            self._with_base[service] = with_base
        alone = self._K[column, :, service] + self._curves.own_variance[service]  # (n_resources,)
        per_resource = 2 * (self._G[column].T + with_base) + alone  # (n_nodes, n_resources)
        return neutral_where_unknown((self._factor * per_resource).sum(axis=1), self._known)

    def add(self, service: int, node: int, pods: int = 1) -> None:
        """`pods` more pods of `service` on `node`; negative takes them away."""
        self._counts[node, service] += pods
        n_columns = len(self._column)
        self._G[:n_columns, :, node] += pods * self._K[:n_columns, :, service]

    def set_base(self, base: AnyFloats) -> None:
        """Replace the load beside the counted pods: (n_nodes, n_resources, n_points)."""
        self._base = base
        self._with_base.clear()

    def set_weights(self, weights: AnyFloats) -> None:
        """Weigh the points anew, (n_points,): 0 for those that are over. Columns are made again when next read.

        The variances stay whole: they are sums over all points.
        """
        self._weights = np.asarray(weights, dtype=np.float64)
        self._column.clear()
        self._with_base.clear()

    def _add_column(self, service: int) -> int:
        column = len(self._column)
        if column == len(self._K):
            self._K = np.concatenate([self._K, np.zeros_like(self._K)])
            self._G = np.concatenate([self._G, np.zeros_like(self._G)])
        weighted = self._curves.usage[service] * self._weights  # (n_resources, n_points)
        row = np.einsum("srp,rp->rs", self._curves.usage, weighted, optimize=True)  # (n_resources, n_services)
        row[:, service] += self._curves.shared_variance[service]
        self._K[column] = row
        self._G[column] = row @ self._counts.T
        self._column[service] = column
        return column


def best_nodes(cost: Floats, feasible: Bools, n_best: int) -> Ints:
    """The `n_best` feasible nodes of lowest cost, in no particular order."""
    among = np.flatnonzero(feasible)
    if len(among) <= n_best:
        return among
    return among[np.argpartition(cost[among], n_best - 1)[:n_best]]


def _factor(capacity: AnyFloats, resource_weights: AnyFloats) -> Floats:
    """w_r / (C[n, r] * mean C_r), 0 where capacity is no limit: (n_nodes, n_resources)."""
    limits = limited(capacity)
    known = np.where(limits, np.nan_to_num(capacity), 0.0)
    mean = known.sum(axis=0) / np.maximum(limits.sum(axis=0), 1)  # (n_resources,)
    return np.where(limits, resource_weights / np.where(limits, known * mean, 1.0), 0.0)
