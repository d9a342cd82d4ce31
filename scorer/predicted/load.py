"""Predicted load of every node over the coming days, as shares of capacity, and what one more pod costs there.

A *profile* is the usage curve of one pod, a *point* a half hour to come. Applying a pod touches one row of the table:
O(resources x points), whatever the number of nodes. A score reads a column: the energy growth of one profile on all
nodes is a matrix-vector product when first asked for and is mended afterwards in the rows that changed since.
Live error (usage now beyond what was predicted) has one shape over time for all nodes, so it is kept as a number per
node and resource and joins when a column is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from forecast.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from scorer.predicted.changed_rows import ChangedRows
from scorer.predicted.growing import grown
from scorer.scores.capacity import any_limit, limited, neutral_where_unknown
from scorer.scores.predicted_peak import power_growth

__all__ = ["LoadSnapshot", "PredictedLoad", "ResourceWeights"]

ResourceWeights = tuple[float, ...]
"""(n_resources,) how much each resource counts. Profiles that are weighed in several ways have a column for each."""

_MOST_COLUMNS = 256
"""Columns that are kept: those asked for last. 256 of 20,000 nodes are 20 MB."""

_MOST_TERMS = 64  # ways of weighing whose terms are kept: those made last

_IDLE = 1e-9
"""A pod that uses nothing costs nothing anywhere. It is taken to use this share of a mean node, so that it still goes
where there is most room."""


_LARGE = 8.0
"""Shares of capacity that, taken away again, leave rounding errors behind that matter: the row is summed anew."""


@dataclass(slots=True)
class _ByNode:
    """One number per node, derived from its row; valid for `version`, up to `position` of the log of changed rows."""

    values: Floats32
    version: tuple[int, ...]
    position: int


@dataclass(frozen=True, slots=True)
class _Terms:
    """What all columns share.

    per_mean     : (n_resources,) w_r / mean C_r
    node_weights : (n_nodes, n_resources) w_r * C[n, r] / mean C_r, 0 where capacity is no limit
    known        : (n_nodes,)
    """

    per_mean: Floats
    node_weights: Floats
    known: Bools


@dataclass(slots=True)
class _Column:
    """The terms of one profile: q weighs a node's shares (n_resources * n_points), `alone` its own square."""

    q: Floats32
    alone: Floats32
    mass: float
    dot: _ByNode


@dataclass(frozen=True, slots=True)
class LoadSnapshot:
    """Copies for a check elsewhere.

    share      : (n_nodes, n_resources, n_points); base: the same without pods
    usage      : (n_profiles, n_resources, n_points)
    per_capacity : (n_nodes, n_resources)
    """

    share: Floats32
    base: Floats32
    usage: Floats32
    per_capacity: Floats32


class PredictedLoad:
    """Rows are nodes and may come in any order; a row never set has no capacity and costs as much as the median.

    Held in float32: the time goes into reading the table, and a forecast is not known to seven digits.
    """

    def __init__(self, point_weights: AnyFloats, resource_weights: AnyFloats) -> None:
        """
        point_weights    : (n_points,)
        resource_weights : (n_resources,) that count unless others are asked for
        """
        self._resource_weights: ResourceWeights = tuple(np.asarray(resource_weights, dtype=np.float64).tolist())
        n_resources, n_points = len(self._resource_weights), len(point_weights)
        self.n_nodes, self.n_profiles = 0, 0
        # One row per node or profile, more rows than used: grown by halves.
        self._share = np.zeros((0, n_resources, n_points), dtype=np.float32)
        self._base = np.zeros_like(self._share)
        self._soft = np.zeros_like(self._share)
        self._usage = np.zeros_like(self._share)
        self._capacity = np.full((0, n_resources), np.nan)
        self._per_capacity = np.zeros((0, n_resources), dtype=np.float32)
        self._error = np.zeros((0, n_resources), dtype=np.float32)
        self._fading = np.zeros(n_points, dtype=np.float32)
        self._pods_on: list[dict[int, float]] = []
        self._nodes_of: list[dict[int, float]] = []
        self._changed = ChangedRows()
        self._version = 0  # of what every column depends on: weights, capacities
        self._error_version = 0
        self._terms_made: dict[ResourceWeights, _Terms] = {}
        self._columns: dict[tuple[int, ResourceWeights], _Column] = {}
        self._peaks: dict[int, _ByNode] = {}
        self._set_point_weights(point_weights)

    # What changes

    def set_node(self, node: int, capacity: AnyFloats, base: AnyFloats) -> None:
        """A node is there, or another than before; its pods stay.

        capacity : (n_resources,) NaN or 0 = not a limit
        base     : (n_resources, n_points) load beside the pods that are added, base units
        """
        self._ensure_node(node)
        if not np.array_equal(self._capacity[node], capacity, equal_nan=True):
            self._capacity[node] = capacity
            self._capacities_changed()
        limits = limited(capacity)
        self._error[node] /= np.where(self._per_capacity[node] > 0, self._per_capacity[node], 1.0)
        self._per_capacity[node] = np.where(limits, 1 / np.where(limits, np.nan_to_num(capacity), 1.0), 0.0)
        self._soft[node] = 0.0  # until it is shared out again
        self._error[node] *= self._per_capacity[node]
        self._base[node] = base * self._per_capacity[node][:, None]
        self._rebuild_row(node)

    def clear_node(self, node: int) -> None:
        """The node is gone. Pods that are still said to be on it stay counted, in case it comes back."""
        self.set_node(node, np.full(self._capacity.shape[1], np.nan), np.zeros(self._base.shape[1:]))

    def add_profile(self, usage: AnyFloats) -> int:
        """Make a new profile known, (n_resources, n_points) in base units; returns its number."""
        profile = self.n_profiles
        self._usage = grown(self._usage, profile + 1)
        self._usage[profile] = usage
        self._nodes_of.append({})
        self.n_profiles += 1
        return profile

    def set_profile(self, profile: int, usage: AnyFloats) -> None:
        """The pods of a profile use something else than was thought: all of them, wherever they are."""
        new = np.asarray(usage, dtype=np.float32)
        difference = new - self._usage[profile]
        self._usage[profile] = new
        for column in [column for column in self._columns if column[0] == profile]:
            del self._columns[column]
        for node, pods in self._nodes_of[profile].items():
            self._add_to_row(node, difference, pods)

    def add(self, profile: int, node: int, pods: float = 1.0) -> None:
        """`pods` more pods of a profile on a node; negative takes them away."""
        self._ensure_node(node)
        left = self._pods_on[node].get(profile, 0.0) + pods
        if abs(left) < 1e-9:
            self._pods_on[node].pop(profile, None)
            self._nodes_of[profile].pop(node, None)
        else:
            self._pods_on[node][profile] = self._nodes_of[profile][node] = left
        if self._pods_on[node]:
            self._add_to_row(node, self._usage[profile], pods)
        else:
            self._rebuild_row(node)  # an empty node carries no rounding errors on

    def set_base(self, base: AnyFloats) -> None:
        """Replace the load beside the added pods: (n_nodes, n_resources, n_points) in base units, all nodes at once."""
        new = np.asarray(base * self._per_capacity[: self.n_nodes, :, None], dtype=np.float32)
        self._share[: self.n_nodes] += new - self._base[: self.n_nodes]
        self._base[: self.n_nodes] = new
        self._version += 1

    def set_soft_load(self, load: AnyFloats) -> None:
        """Replace what is kept free beside base and pods: (n_nodes, n_resources, n_points) in base units."""
        n = self.n_nodes
        new = np.asarray(load * self._per_capacity[:n, :, None], dtype=np.float32)
        self._share[:n] += new - self._soft[:n]
        self._soft[:n] = new
        self._version += 1

    def set_weights(self, point_weights: AnyFloats) -> None:
        """Weigh the points anew, (n_points,): 0 for those that are over, which then are no peak either."""
        self._set_point_weights(point_weights)
        self._version += 1

    def set_live_error(self, error: AnyFloats, fading: AnyFloats) -> None:
        """Usage beyond what was predicted, which the points to come inherit in part.

        error  : (n_nodes, n_resources) base units, NaN = not known
        fading : (n_points,) share of it that is left at each point
        """
        per_capacity = self._per_capacity[: self.n_nodes]
        self._error[: self.n_nodes] = np.nan_to_num(np.asarray(error)) * per_capacity
        self._fading = np.asarray(fading, dtype=np.float32)
        self._error_version += 1

    # What is asked

    @property
    def known(self) -> Bools:
        """(n_nodes,) whether a node has the capacity of at least one resource."""
        return self._terms(self._resource_weights).known

    def growth(self, profile: int, nodes: Ints | slice = slice(None), weights: ResourceWeights | None = None) -> Floats:
        """Energy growth with one more pod of a profile: (len(nodes),), lower is better (scorer.scores.energy).

        weights : of the resources; None = the usual ones
        """
        column = self._column(profile, weights or self._resource_weights)
        n = self.n_nodes
        dot = self._up_to_date(column.dot, (self._version,), lambda rows: self._flat(rows) @ column.q)
        fading = column.q.reshape(self._share.shape[1:]) @ self._fading  # (n_resources,)
        cost = 2 * dot[nodes] + self._per_capacity[:n][nodes] @ column.alone + 2 * (self._error[:n][nodes] @ fading)
        return neutral_where_unknown(cost.astype(np.float64), self.known[nodes])

    def mean_share(
        self, profile: int, nodes: Ints | slice = slice(None), weights: ResourceWeights | None = None
    ) -> Floats:
        """The same as a share of capacity, 0 = empty: nodes' mean share when and where the pod uses it: (len(nodes),).

        The pod itself is counted half.
        """
        mass = self._column(profile, weights or self._resource_weights).mass
        return self.growth(profile, nodes, weights) / (2 * mass)

    def power_growth(self, profile: int, nodes: Ints, weights: ResourceWeights | None = None) -> Floats:
        """Exact cost of one more pod on each of `nodes`: (len(nodes),), lower is better (scorer.scores.predicted_peak).

        A node without any known capacity costs as much as the median of the others among `nodes`.
        """
        pod = self._usage[profile] * self._per_capacity[nodes][:, :, None]
        node_weights = self._terms(weights or self._resource_weights).node_weights[nodes]
        growth = power_growth(self.share(nodes), pod, self._point_weights, node_weights)
        return neutral_where_unknown(growth, self.known[nodes])

    def peak_with(self, profile: int, resource: int, nodes: Ints | slice = slice(None)) -> Floats:
        """At most this share of a resource is used at the peak with one more pod of a profile: (len(nodes),).

        The sum of both peaks, which need not coincide; 0 where capacity is no limit.
        """
        peak = self._peaks.setdefault(resource, _ByNode(np.empty(0, dtype=np.float32), (), 0))
        version = (self._version, self._error_version)
        values = self._up_to_date(peak, version, lambda rows: self._highest(rows, resource))
        of_pod = self._usage[profile, resource, self._counted].max(initial=0.0)
        per_capacity = self._per_capacity[: self.n_nodes, resource][nodes]
        return np.asarray(values[nodes] + of_pod * per_capacity, dtype=np.float64)

    def peaks_with(self, profile: int, nodes: Ints) -> Floats:
        """The highest share of each resource with one more pod of a profile: (len(nodes), n_resources)."""
        pod = self._usage[profile] * self._per_capacity[nodes][:, :, None]
        with_pod = (self.share(nodes) + pod)[:, :, self._counted]
        return np.asarray(with_pod.max(axis=2, initial=0.0), dtype=np.float64)

    def peaks(self, nodes: Ints) -> Floats:
        """The highest share of each resource as things are: (len(nodes), n_resources)."""
        return np.asarray(self.share(nodes)[:, :, self._counted].max(axis=2, initial=0.0), dtype=np.float64)

    def share(self, nodes: Ints | slice) -> Floats32:
        """Predicted share of capacity, live error included: (len(nodes), n_resources, n_points), at least 0.

        A node that is idle now may lack more than it will use at night, when the error has not faded yet.
        """
        return np.maximum(self._share[nodes] + self._error[nodes][:, :, None] * self._fading, np.float32(0))

    def live_error(self, nodes: Sequence[int]) -> Floats:
        """The live error of some nodes as it was set: (len(nodes), n_resources) base units, 0 = not known."""
        per_capacity = self._per_capacity[list(nodes)].astype(np.float64)
        return np.asarray(self._error[list(nodes)] / np.where(per_capacity > 0, per_capacity, 1.0))

    def pods_on(self, node: int) -> dict[int, float]:
        """Pods of each profile on a node."""
        return dict(self._pods_on[node]) if node < self.n_nodes else {}

    def snapshot(self) -> LoadSnapshot:
        """Copies of the table and of the curves it was made from."""
        n = self.n_nodes
        return LoadSnapshot(
            share=self._share[:n].copy(),
            base=self._base[:n] + self._soft[:n],
            usage=self._usage[: self.n_profiles].copy(),
            per_capacity=self._per_capacity[:n].copy(),
        )

    # Inside

    def _ensure_node(self, node: int) -> None:
        if node < self.n_nodes:
            return
        n = node + 1
        self._share, self._base, self._soft = grown(self._share, n), grown(self._base, n), grown(self._soft, n)
        self._capacity = grown(self._capacity, n, fill=np.nan)
        self._per_capacity, self._error = grown(self._per_capacity, n), grown(self._error, n)
        self._pods_on += [{} for _ in range(n - self.n_nodes)]
        self.n_nodes = n
        self._capacities_changed()

    def _add_to_row(self, node: int, usage: Floats32, pods: float) -> None:
        change = np.float32(pods) * self._per_capacity[node][:, None] * usage
        if change.min(initial=0.0) < -_LARGE:
            self._rebuild_row(node)
            return
        self._share[node] += change
        self._changed.append(node, longest=self.n_nodes)

    def _rebuild_row(self, node: int) -> None:
        row = self._base[node].astype(np.float64) + self._soft[node]
        for profile, pods in self._pods_on[node].items():
            row += pods * self._per_capacity[node][:, None] * self._usage[profile]
        self._share[node] = row
        self._changed.append(node, longest=self.n_nodes)

    def _capacities_changed(self) -> None:
        self._version += 1
        self._terms_made.clear()

    def _terms(self, weights: ResourceWeights) -> _Terms:
        """Made when first needed after capacities changed."""
        terms = self._terms_made.get(weights)
        if terms is None:
            terms = self._terms_made[weights] = _terms(self._capacity[: self.n_nodes], np.array(weights))
            if len(self._terms_made) > _MOST_TERMS:
                del self._terms_made[next(iter(self._terms_made))]
        return terms

    def _column(self, profile: int, weights: ResourceWeights) -> _Column:
        column = self._columns.pop((profile, weights), None)
        if column is None or column.dot.version != (self._version,):
            column = self._new_column(profile, weights)
        self._columns[profile, weights] = column  # last = asked for last
        if len(self._columns) > _MOST_COLUMNS:
            del self._columns[next(iter(self._columns))]
        return column

    def _new_column(self, profile: int, weights: ResourceWeights) -> _Column:
        usage = self._usage[profile].astype(np.float64)
        weighted = usage * self._point_weights * self._terms(weights).per_mean[:, None]  # (n_resources, n_points)
        alone = (weighted * usage).sum(axis=1)
        if not weighted.any():
            weighted = _IDLE * np.array(weights)[:, None] * self._point_weights
        mass = float(weighted.sum())
        q = weighted.astype(np.float32).ravel()
        values = np.asarray(self._flat(slice(None)) @ q)
        dot = _ByNode(values, (self._version,), self._changed.position)
        return _Column(q, alone.astype(np.float32), mass if mass > 0 else 1.0, dot)

    def _up_to_date(
        self, derived: _ByNode, version: tuple[int, ...], compute: Callable[[Ints | slice], Floats32]
    ) -> Floats32:
        """The values of all nodes, those of changed rows computed again."""
        rows = None
        if derived.version == version and len(derived.values) == self.n_nodes:
            rows = self._changed.since(derived.position)
        if rows is None:
            derived.values = compute(slice(None))
        elif len(rows):
            derived.values[rows] = compute(rows)
        derived.version, derived.position = version, self._changed.position
        return derived.values

    def _flat(self, rows: Ints | slice) -> Floats32:
        """Rows of the table as vectors: (n_rows, n_resources * n_points)."""
        table = self._share[: self.n_nodes]
        return table[rows].reshape(-1, table.shape[1] * table.shape[2])

    def _highest(self, rows: Ints | slice, resource: int) -> Floats32:
        """The highest share of a resource among the points that count: (n_rows,)."""
        by_point = self._share[: self.n_nodes, resource][rows][:, self._counted]
        error = self._error[: self.n_nodes, resource][rows]
        if error.any():
            by_point = by_point + error[:, None] * self._fading[self._counted]
        return np.asarray(by_point.max(axis=1, initial=0.0), dtype=np.float32)

    def _set_point_weights(self, point_weights: AnyFloats) -> None:
        self._point_weights = np.asarray(point_weights, dtype=np.float32)
        counted = np.flatnonzero(self._point_weights > 0)
        contiguous = len(counted) > 0 and counted[-1] - counted[0] + 1 == len(counted)
        # A slice is read in place where an index array would copy.
        self._counted: slice | Ints = slice(int(counted[0]), int(counted[-1]) + 1) if contiguous else counted


def _terms(capacity: Floats, resource_weights: Floats) -> _Terms:
    limits = limited(capacity)
    known = np.where(limits, np.nan_to_num(capacity), 0.0)
    mean = known.sum(axis=0) / np.maximum(limits.sum(axis=0), 1)
    per_mean = np.where(mean > 0, resource_weights / np.where(mean > 0, mean, 1.0), 0.0)
    return _Terms(per_mean, known * per_mean, any_limit(capacity))
