"""Predicted load of every node over the coming days, as shares of capacity, and what one more pod costs there.

A *profile* is the usage curve of one pod, a *point* a half hour to come. Applying a pod touches one row of the table:
O(resources x points), whatever the number of nodes. A score reads a column (growth_columns.py), which a landing pod
changes by one number. Live error (usage now beyond what was predicted) has one shape over time for all nodes, so it is
kept as a number per node and resource and joins when a column is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from cluster.predicted.growth_columns import GrowthColumn, GrowthColumns, ResourceWeights
from cluster.predicted.load_tables import ANYTHING, LoadAfterLanding, LoadTables
from cluster.predicted.power_growth import power_growth
from cluster.predicted.unknown_capacity import limited, neutral_where_unknown

_LARGE = 8.0
"""Shares of capacity that, taken away again, leave rounding errors behind that matter: the row is summed anew."""

_ROWS_AT_ONCE = 128
"""Rows that pods are added to together: 860 kB, which stay in the processor's cache."""


@dataclass(slots=True)
class _Highest:
    """The highest share of one resource on each node, of the table as it was at `position` of the log."""

    values: Floats32 = field(default_factory=lambda: np.empty(0, dtype=np.float32))
    version: tuple[int, int] = (-1, -1)
    position: int = 0


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
        self._tables = LoadTables(len(self._resource_weights), len(point_weights))
        self._columns = GrowthColumns(self._tables)
        self._pods_on: list[dict[int, float]] = []
        self._nodes_of: list[dict[int, float]] = []
        self._highest_of: dict[int, _Highest] = {}
        self._set_point_weights(point_weights)

    @property
    def n_nodes(self) -> int:
        """Rows of nodes, those without one included."""
        return self._tables.n_nodes

    @property
    def n_profiles(self) -> int:
        return self._tables.n_profiles

    @property
    def point_weights(self) -> Floats32:
        """(n_points,), to be read only; 0 = over."""
        return self._tables.point_weights

    # What changes

    def set_node(self, node: int, capacity: AnyFloats, base: AnyFloats) -> None:
        """A node is there, or another than before; its pods stay.

        capacity : (n_resources,) NaN or 0 = not a limit
        base     : (n_resources, n_points) load besides the pods that are added, base units
        """
        self._ensure_node(node)
        tables = self._tables
        if not np.array_equal(tables.capacity[node], capacity, equal_nan=True):
            tables.capacity[node] = capacity
            tables.capacities_changed()
        limits, before = limited(capacity), tables.per_capacity[node].copy()
        tables.per_capacity[node] = np.where(limits, 1 / np.where(limits, np.nan_to_num(capacity), 1.0), 0.0)
        tables.error[node] = tables.error[node] / np.where(before > 0, before, 1.0) * tables.per_capacity[node]
        tables.soft[node] = 0.0  # until it is shared out again
        tables.base[node] = base * tables.per_capacity[node][:, None]
        self._rebuild_row(node)

    def clear_node(self, node: int) -> None:
        """The node is gone. Pods that are still said to be on it stay counted, in case it comes back."""
        tables = self._tables
        self.set_node(node, np.full(tables.capacity.shape[1], np.nan), np.zeros(tables.base.shape[1:]))

    def add_profile(self, usage: AnyFloats) -> int:
        """Make a new profile known, (n_resources, n_points) in base units; returns its number."""
        profile = self.n_profiles
        self._tables.set_usage(profile, usage)
        self._nodes_of.append({})
        return profile

    def set_profile(self, profile: int, usage: AnyFloats) -> None:
        """The pods of a profile use something else than was thought: all of them, wherever they are."""
        new = np.asarray(usage, dtype=np.float32)
        difference = new - self._tables.usage[profile]
        self._tables.set_usage(profile, new)
        self._columns.forget(profile)
        for node, pods in self._nodes_of[profile].items():
            self._add_to_row(node, difference, pods, ANYTHING)

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
            self._add_to_row(node, self._tables.usage[profile], pods, self._tables.curve_of[profile])
        else:
            self._rebuild_row(node)  # an empty node carries no rounding errors on

    def add_many(self, profile: int, nodes: Sequence[int]) -> None:
        """One more pod of a profile on each of these nodes, which may occur several times: as `add` one by one."""
        tables, nodes_of = self._tables, self._nodes_of[profile]
        if not len(nodes):
            return
        self._ensure_node(max(nodes))
        times: list[list[int]] = []  # the nodes that occur a first time, a second time, ...
        came: dict[int, int] = {}
        for node in nodes:
            on = self._pods_on[node]
            on[profile] = nodes_of[node] = on.get(profile, 0.0) + 1.0
            nth = came[node] = came.get(node, -1) + 1
            if nth == len(times):
                times.append([])
            times[nth].append(node)
        usage = tables.usage[profile]
        for once in times:
            for start in range(0, len(once), _ROWS_AT_ONCE):
                rows = np.array(once[start : start + _ROWS_AT_ONCE])
                tables.share[rows] += tables.per_capacity[rows][:, :, None] * usage
        tables.changes.extend(nodes, longest=self.n_nodes, curve=tables.curve_of[profile])

    def set_base(self, base: AnyFloats) -> None:
        """Replace the load besides the added pods: (n_nodes, n_resources, n_points) in base units, all nodes
        at once.
        """
        self._replace_part(self._tables.base, base)

    def set_soft_load(self, load: AnyFloats) -> None:
        """Replace what is kept free in addition to base and pods: (n_nodes, n_resources, n_points) in base units."""
        self._replace_part(self._tables.soft, load)

    def set_weights(self, point_weights: AnyFloats) -> None:
        """Weigh the points anew, (n_points,): 0 for those that are over, which then are no peak either."""
        self._set_point_weights(point_weights)

    def set_live_error(self, error: AnyFloats, fading: AnyFloats) -> None:
        """Usage beyond what was predicted, which the points to come inherit in part.

        error  : (n_nodes, n_resources) base units, NaN = not known
        fading : (n_points,) share of it that is left at each point
        """
        tables = self._tables
        per_capacity = tables.per_capacity[: self.n_nodes]
        tables.set_error(np.nan_to_num(np.asarray(error)) * per_capacity, fading)

    # What is asked

    def version(self, profile: int) -> tuple[int, ...]:
        """Others whenever the shares of any node, or what a pod of the profile uses, may be others."""
        tables = self._tables
        of_rows = tables.version, tables.capacity_version, tables.error_version, tables.changes.position
        return tables.n_nodes, *of_rows, tables.curve_of[profile]

    @property
    def known(self) -> Bools:
        """(n_nodes,) whether a node has the capacity of at least one resource."""
        return self._columns.terms(self._resource_weights).known

    def column(
        self, profile: int, weights: ResourceWeights | None = None, soon: Callable[[], Iterable[int]] = tuple
    ) -> GrowthColumn:
        """What one more pod of a profile costs on all nodes, to be read only.

        weights : None = the usual ones
        soon    : profiles that are probably asked about next: all of them are made from one reading of the table
        """
        return self._columns.column(profile, weights or self._resource_weights, soon)

    def ahead(self, profile: int, weights: ResourceWeights | None = None) -> LoadAfterLanding:
        """Rows as they will be with more pods of a profile."""
        node_weights = self._columns.terms(weights or self._resource_weights).node_weights
        return LoadAfterLanding(self._tables, profile, node_weights, self._counted)

    def own_growth(self, column: GrowthColumn, profile: int) -> Floats32:
        """(n_nodes,) what one more pod of the profile, landing there, adds to `column.dot`."""
        return self._columns.own_growth(column, profile)

    def growth(self, profile: int, nodes: Ints | slice = slice(None), weights: ResourceWeights | None = None) -> Floats:
        """Energy growth with one more pod of a profile: (len(nodes),), lower is better (scorer.scores.energy).

        weights : of the resources; None = the usual ones
        """
        column = self.column(profile, weights)
        cost = (2 * column.dot[nodes] + column.rest[nodes]).astype(np.float64)
        return neutral_where_unknown(cost, self.known[nodes])

    def mean_share(
        self, profile: int, nodes: Ints | slice = slice(None), weights: ResourceWeights | None = None
    ) -> Floats:
        """The same as a share of capacity, 0 = empty: nodes' mean share when and where the pod uses it: (len(nodes),).

        The pod itself is counted half.
        """
        column = self.column(profile, weights)
        return neutral_where_unknown(column.share(column.dot[nodes], column.rest[nodes]), self.known[nodes])

    def power_growth(self, profile: int, nodes: Ints, weights: ResourceWeights | None = None) -> Floats:
        """Exact cost of one more pod on each of `nodes`: (len(nodes),), lower is better
        (cluster.predicted.power_growth).

        A node without any known capacity costs as much as the median of the others among `nodes`.
        """
        pod = self._of_pod(profile, nodes)
        node_weights = self._columns.terms(weights or self._resource_weights).node_weights[nodes]
        growth = power_growth(self.share(nodes), pod, self._tables.point_weights, node_weights)
        return neutral_where_unknown(growth, self.known[nodes])

    def peak_with(self, profile: int, resource: int, nodes: Ints | slice = slice(None)) -> Floats:
        """At most this share of a resource is used at the peak with one more pod of a profile: (len(nodes),).

        The sum of both peaks, which need not coincide; 0 where capacity is no limit.
        """
        values, per_capacity = self._highest(resource), self._tables.per_capacity[: self.n_nodes, resource]
        return np.asarray(values[nodes] + self.peak_of_pod(profile, resource) * per_capacity[nodes], dtype=np.float64)

    def highest(self, resource: int, nodes: Ints | slice = slice(None)) -> Floats32:
        """The highest share of a resource as things are: (len(nodes),)."""
        return self._highest(resource)[nodes]

    def per_capacity(self, nodes: Ints) -> Floats32:
        """(len(nodes), n_resources) 1 / capacity, 0 where it is no limit."""
        return self._tables.per_capacity[nodes]

    def peak_of_pod(self, profile: int, resource: int) -> np.float32:
        """What one pod of a profile uses of a resource at its own peak, base units."""
        return np.float32(self._tables.usage[profile, resource, self._counted].max(initial=0.0))

    def peaks_with(self, profile: int, nodes: Ints) -> Floats:
        """The highest share of each resource with one more pod of a profile: (len(nodes), n_resources)."""
        with_pod = (self.share(nodes) + self._of_pod(profile, nodes))[:, :, self._counted]
        return np.asarray(with_pod.max(axis=2, initial=0.0), dtype=np.float64)

    def peaks(self, nodes: Ints) -> Floats:
        """The highest share of each resource as things are: (len(nodes), n_resources)."""
        return np.asarray(self.share(nodes)[:, :, self._counted].max(axis=2, initial=0.0), dtype=np.float64)

    def share(self, nodes: Ints | slice) -> Floats32:
        """Predicted share of capacity, live error included: (len(nodes), n_resources, n_points), at least 0.

        A node that is idle now may lack more than it will use at night, when the error has not faded yet.
        """
        tables = self._tables
        with_error = tables.error[nodes][:, :, None] * tables.fading
        with_error += tables.share[nodes]
        return np.asarray(np.maximum(with_error, np.float32(0), out=with_error))

    def share_between(self, resource: int, first: int, end: int, nodes: Ints | slice = slice(None)) -> Floats32:
        """`share` of one resource at the points from `first` to before `end`: (len(nodes), end - first)."""
        tables = self._tables
        share = tables.share[: self.n_nodes, resource, first:end][nodes]
        error = tables.error[: self.n_nodes, resource][nodes]
        return np.asarray(np.maximum(share + error[:, None] * tables.fading[first:end], np.float32(0)))

    def usage_of(self, profile: int) -> Floats32:
        """What one pod of a profile is taken to use: (n_resources, n_points) base units, to be read only."""
        return np.asarray(self._tables.usage[profile])

    def live_error(self, nodes: Sequence[int]) -> Floats:
        """The live error of some nodes as it was set: (len(nodes), n_resources) base units, 0 = not known."""
        per_capacity = self._tables.per_capacity[list(nodes)].astype(np.float64)
        return np.asarray(self._tables.error[list(nodes)] / np.where(per_capacity > 0, per_capacity, 1.0))

    def pods_on(self, node: int) -> dict[int, float]:
        """Pods of each profile on a node."""
        return dict(self._pods_on[node]) if node < self.n_nodes else {}

    def pods_of(self, profiles: Sequence[int]) -> Floats:
        """Pods of each of these profiles on every node: (n_nodes, len(profiles))."""
        pods = np.zeros((self.n_nodes, len(profiles)))
        for at, profile in enumerate(profiles):
            on = self._nodes_of[profile]
            pods[list(on), at] = list(on.values())
        return pods

    def snapshot(self) -> LoadSnapshot:
        """Copies of the table and of the curves it was made from."""
        tables, n = self._tables, self.n_nodes
        return LoadSnapshot(
            share=tables.share[:n].copy(),
            base=tables.base[:n] + tables.soft[:n],
            usage=tables.usage[: self.n_profiles].copy(),
            per_capacity=tables.per_capacity[:n].copy(),
        )

    # Inside

    def _ensure_node(self, node: int) -> None:
        if self._tables.ensure_node(node):
            self._pods_on += [{} for _ in range(node + 1 - len(self._pods_on))]

    def _add_to_row(self, node: int, usage: Floats32, pods: float, curve: int) -> None:
        tables = self._tables
        change = np.float32(pods) * tables.per_capacity[node][:, None] * usage
        if change.min(initial=0.0) < -_LARGE:
            self._rebuild_row(node)
            return
        tables.share[node] += change
        tables.changes.append(node, longest=self.n_nodes, curve=curve, pods=pods)

    def _rebuild_row(self, node: int) -> None:
        tables = self._tables
        row = tables.base[node].astype(np.float64) + tables.soft[node]
        for profile, pods in self._pods_on[node].items():
            row += pods * tables.per_capacity[node][:, None] * tables.usage[profile]
        tables.share[node] = row
        tables.changes.append(node, longest=self.n_nodes)

    def _replace_part(self, part: Floats32, load: AnyFloats) -> None:
        tables, n = self._tables, self.n_nodes
        new = np.asarray(load * tables.per_capacity[:n, :, None], dtype=np.float32)
        tables.share[:n] += new - part[:n]
        part[:n] = new
        tables.version += 1

    def _of_pod(self, profile: int, nodes: Ints) -> Floats32:
        """What one more pod adds to each of `nodes`: (len(nodes), n_resources, n_points)."""
        tables = self._tables
        return np.asarray(tables.usage[profile] * tables.per_capacity[nodes][:, :, None])

    def _highest(self, resource: int) -> Floats32:
        """(n_nodes,) the highest share of a resource among the points that count, those of changed rows made again."""
        tables = self._tables
        highest = self._highest_of.setdefault(resource, _Highest())
        version = (tables.version, tables.error_version)
        rows = tables.changes.rows_since(highest.position) if highest.version == version else None
        if rows is None:
            highest.values = self._highest_at(slice(0, self.n_nodes), resource)
        elif len(rows):
            highest.values[rows] = self._highest_at(rows, resource)
        highest.version, highest.position = version, tables.changes.position
        return highest.values

    def _highest_at(self, rows: Ints | slice, resource: int) -> Floats32:
        tables = self._tables
        by_point = tables.share[rows, resource][:, self._counted]
        error = tables.error[rows, resource]
        if error.any():
            by_point = by_point + error[:, None] * tables.fading[self._counted]
        return np.asarray(by_point.max(axis=1, initial=0.0), dtype=np.float32)

    def _set_point_weights(self, point_weights: AnyFloats) -> None:
        self._tables.set_point_weights(point_weights)
        counted = np.flatnonzero(self._tables.point_weights > 0)
        contiguous = len(counted) > 0 and counted[-1] - counted[0] + 1 == len(counted)
        # A slice is read in place where an index array would copy.
        self._counted: slice | Ints = slice(int(counted[0]), int(counted[-1]) + 1) if contiguous else counted
