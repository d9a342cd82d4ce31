"""What one more pod of a profile costs on every node: a column per profile, mended as pods come and go.

    growth[n] = 2 <share_n, q> + <own, own>_n + 2 <error_n, q>          (scorer/scores/energy.py)

with q the profile's curve, weighted. A pod of any curve v that lands on n adds <v / C_n, q>, a sum over resources of
inner products <v, q>_r that do not depend on the node: a landing costs a column one number, not a look at the row.
The rest of a column (its own square, the live error) changes only with capacities and measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from base.arrays import Bools, Floats, Floats32, Ints
from base.one_thread import one_blas_thread
from cluster.predicted.load_tables import NEVER, LoadTables, RowChanges
from cluster.predicted.unknown_capacity import any_limit, limited

ResourceWeights = tuple[float, ...]
"""(n_resources,) how much each resource counts. Profiles that are weighed in several ways have a column for each."""

_MOST_COLUMNS = 512
"""Columns that are kept: those asked for last. 512 of 20,000 nodes are 80 MB."""

_MOST_PRODUCTS = 512  # inner products kept by a column: 200 bytes each, and quick to make again

_MOST_TERMS = 64  # ways of weighing whose terms are kept: those made last

_LARGE_PRODUCT = 2**18  # numbers; OpenBLAS parts products from 460,800 on (sgemv in its interface/gemv.c)

_AT_ONCE = 16
"""Columns that are made from one reading of the table: 16 take 6 ms at 5,000 nodes, one alone 1 to 2 ms."""

_ROWS_AT_ONCE = 128
"""Rows that all of these read before the next: they stay in the processor's cache, and OpenBLAS does not part them."""

_IDLE = 1e-9
"""A pod that uses nothing costs nothing anywhere. It is taken to use this share of a mean node, so that it still goes
where there is most room."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What all columns share.

    per_mean     : (n_resources,) w_r / mean C_r
    node_weights : (n_nodes, n_resources) w_r * C[n, r] / mean C_r, 0 where capacity is no limit
    known        : (n_nodes,)
    """

    per_mean: Floats
    node_weights: Floats
    known: Bools


@dataclass(slots=True)
class GrowthColumn:
    """All of float32, so that a look ahead computes the very numbers that the tables will have.

    q     : (n_resources, n_points) weighs a node's shares
    alone : (n_resources,) the profile's own square
    mass  : half of growth / mass is a share of capacity
    dot   : (n_nodes,) <share_n, q>, without live error
    rest  : (n_nodes,) growth = 2 * dot + rest
    inner : by curve, (n_resources,) its inner product with q
    """

    q: Floats32
    alone: Floats32
    mass: float
    dot: Floats32
    rest: Floats32
    version: int
    rest_version: tuple[int, int]
    position: int
    inner: dict[int, Floats32] = field(default_factory=dict)

    def share(self, dot: Floats32, rest: Floats32) -> Floats:
        """Mean share of capacity, any shape: 0 = empty, the pod itself counted half."""
        return np.asarray((2 * dot + rest).astype(np.float64) / (2 * self.mass))

    def share_of(self, dot: np.float32, rest: np.float32) -> float:
        """The same of one node."""
        return float(2 * dot + rest) / (2 * self.mass)


class GrowthColumns:
    """Reads the tables; every change of them is in their log and versions."""

    def __init__(self, tables: LoadTables) -> None:
        self._tables = tables
        self._columns: dict[tuple[int, ResourceWeights], GrowthColumn] = {}
        self._terms: dict[ResourceWeights, Terms] = {}
        self._terms_version = -1

    def forget(self, profile: int) -> None:
        """The profile's curve is another."""
        for column in [column for column in self._columns if column[0] == profile]:
            del self._columns[column]

    def terms(self, weights: ResourceWeights) -> Terms:
        """Made when first needed after capacities changed."""
        tables = self._tables
        if self._terms_version != tables.capacity_version:
            self._terms.clear()
            self._terms_version = tables.capacity_version
        terms = self._terms.get(weights)
        if terms is None:
            terms = self._terms[weights] = _terms(tables.capacity[: tables.n_nodes], np.array(weights))
            if len(self._terms) > _MOST_TERMS:
                del self._terms[next(iter(self._terms))]
        return terms

    def column(self, profile: int, weights: ResourceWeights, soon: Callable[[], Iterable[int]] = tuple) -> GrowthColumn:
        """The column as the tables are now; its arrays are to be read only.

        soon : profiles that are probably asked about next. Asked where the whole table has to be read, which then is
               read for them, too
        """
        column = self._columns.pop((profile, weights), None)
        if column is None or column.version != self._tables.version:
            column = self._new(profile, weights)
        if self._tables.changes.since(column.position) is None:
            others = (one for one in dict.fromkeys(soon()) if one != profile)
            self._read([column, *self._outdated(others, weights)])
        else:
            self._follow_changes(column)
        self._mend_rest(column)
        self._columns[profile, weights] = column  # last = asked for last
        while len(self._columns) > _MOST_COLUMNS:
            del self._columns[next(iter(self._columns))]
        return column

    def own_growth(self, column: GrowthColumn, profile: int) -> Floats32:
        """(n_nodes,) what `dot` grows by on each node with one more pod of the profile."""
        tables = self._tables
        curve = tables.curve_of[profile]
        self._multiply(column, [curve])
        return _over_resources(tables.per_capacity[: tables.n_nodes], column.inner[curve])

    # Inside

    def _new(self, profile: int, weights: ResourceWeights) -> GrowthColumn:
        tables = self._tables
        usage = tables.usage[profile].astype(np.float64)
        weighted = usage * tables.point_weights * self.terms(weights).per_mean[:, None]  # (n_resources, n_points)
        alone = (weighted * usage).sum(axis=1)
        if not weighted.any():
            weighted = _IDLE * np.array(weights)[:, None] * tables.point_weights
        mass = float(weighted.sum())
        q = weighted.astype(np.float32)
        nothing = np.zeros(0, dtype=np.float32)
        return GrowthColumn(
            q=q,
            alone=alone.astype(np.float32),
            mass=mass if mass > 0 else 1.0,
            dot=nothing,
            rest=nothing,
            version=tables.version,
            rest_version=(-1, -1),
            position=NEVER,
        )

    def _outdated(self, profiles: Iterable[int], weights: ResourceWeights) -> list[GrowthColumn]:
        """Columns of some of these profiles that need the whole table, too. They are kept from now on."""
        tables, found = self._tables, list[GrowthColumn]()
        for profile in profiles:
            column = self._columns.get((profile, weights))
            if column is None or column.version != tables.version:
                column = self._columns[profile, weights] = self._new(profile, weights)
            elif tables.changes.since(column.position) is not None:
                continue
            found.append(column)
            if len(found) == _AT_ONCE - 1:
                break
        return found

    def _read(self, columns: Sequence[GrowthColumn]) -> None:
        """Multiply all rows with each q, some rows at a time: every product has the bits that it has by itself."""
        tables = self._tables
        table, n = tables.flat(slice(None)), tables.n_nodes
        for column in columns:
            column.dot = np.empty(n, dtype=np.float32)
            column.position = tables.changes.position
        factors = [(column.q.ravel(), column.dot) for column in columns]
        for start in range(0, n, _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            for q, dot in factors:
                np.dot(table[rows], q, out=dot[rows])

    def _follow_changes(self, column: GrowthColumn) -> None:
        tables = self._tables
        if len(column.inner) > _MOST_PRODUCTS:  # some are of curves that are no longer in use
            column.inner.clear()
        changes = tables.changes.since(column.position)
        if changes is not None and len(changes.rows):
            self._follow(column, changes)
        column.position = tables.changes.position

    def _follow(self, column: GrowthColumn, changes: RowChanges) -> None:
        """Add what came, change by change; read the rows again of which more is to be known."""
        tables = self._tables
        curves = sorted(set(changes.curves.tolist()))  # few: np.unique would take several times as long
        which = np.searchsorted(curves, changes.curves)
        self._multiply(column, curves)
        inner = [column.inner.get(curve) for curve in curves]
        rows, pods = changes.rows, changes.pods
        is_known = np.array([one is not None for one in inner], dtype=bool)
        again = np.zeros(0, dtype=np.int64)
        if not is_known.all():
            again = np.unique(rows[~is_known[which]])
            added = ~np.isin(rows, again)
            rows, pods, which = rows[added], pods[added], which[added]
        if len(rows):
            none = np.zeros(len(column.alone), dtype=np.float32)
            products = np.array([none if one is None else one for one in inner])[which]  # (n_changes, n_resources)
            # One after the other where a row occurs twice: the sums are those of changes that are followed one by one.
            np.add.at(column.dot, rows, pods * _over_resources(tables.per_capacity[rows], products))
        if len(again):
            column.dot[again] = self._products(again, column.q)

    def _products(self, rows: Ints | slice, q: Floats32) -> Floats32:
        """Return <share_n, q> of these rows."""
        loads = self._tables.flat(rows)
        if loads.size < _LARGE_PRODUCT:
            return np.asarray(loads @ q.ravel())
        with one_blas_thread():
            return np.asarray(loads @ q.ravel())

    def _multiply(self, column: GrowthColumn, curves: Sequence[int]) -> None:
        """Compute the inner products of these curves with q, as far as the curves are known."""
        current = self._tables.profile_of_curve
        new = [curve for curve in curves if curve not in column.inner and curve in current]
        if not new:
            return
        usage = self._tables.usage[[current[curve] for curve in new]].astype(np.float64)
        products = np.einsum("prt,rt->pr", usage, column.q.astype(np.float64)).astype(np.float32)
        column.inner.update(zip(new, products, strict=True))

    def _mend_rest(self, column: GrowthColumn) -> None:
        tables = self._tables
        version = (tables.capacity_version, tables.error_version)
        if column.rest_version == version:
            return
        n = tables.n_nodes
        fading = column.q @ tables.fading  # (n_resources,)
        own = _over_resources(tables.per_capacity[:n], column.alone)
        column.rest = own + 2 * _over_resources(tables.error[:n], fading)
        column.rest_version = version


def _over_resources(per_node: Floats32, factors: Floats32) -> Floats32:
    """Sum over resources, in their order: (n_nodes,). Not a matrix product, whose rounding depends on how many rows
    there are."""
    return np.asarray((per_node * factors).sum(axis=1))


def _terms(capacity: Floats, resource_weights: Floats) -> Terms:
    limits = limited(capacity)
    known = np.where(limits, np.nan_to_num(capacity), 0.0)
    mean = known.sum(axis=0) / np.maximum(limits.sum(axis=0), 1)
    per_mean = np.where(mean > 0, resource_weights / np.where(mean > 0, mean, 1.0), 0.0)
    return Terms(per_mean, known * per_mean, any_limit(capacity))
