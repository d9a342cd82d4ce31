"""The arrays that the predicted load is made of, the log of what changed in them, and their rows once pods of one
profile have landed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import AnyFloats, Floats, Floats32, Ints
from cluster.predicted.array_rows import grown
from cluster.predicted.power_growth import power_growth

ANYTHING: Final = -1
"""In place of a curve: the row is to be read again."""

NEVER: Final = -1
"""The position of a reader that has seen nothing."""

_SHORTEST: Final = 64


@dataclass(frozen=True, slots=True)
class RowChanges:
    """(n_changes,) each, oldest first: the row, the curve of the pods that came (or ANYTHING), and how many.

    Valid until the next change.
    """

    rows: Ints
    curves: Ints
    pods: Floats32


class LoadChanges:
    """A log of changed rows. Readers keep a position in it; those that fall too far behind must look at every row."""

    def __init__(self) -> None:
        self._rows, self._curves = np.zeros(4 * _SHORTEST, dtype=np.int64), np.zeros(4 * _SHORTEST, dtype=np.int64)
        self._pods = np.zeros(4 * _SHORTEST, dtype=np.float32)
        self._length = self._dropped = 0

    @property
    def position(self) -> int:
        """Where a reader stands that has seen everything: the number of changes so far."""
        return self._dropped + self._length

    def append(self, row: int, *, longest: int, curve: int = ANYTHING, pods: float = 0.0) -> None:
        """Note that a row has `pods` more pods of a curve. longest: changes worth remembering, about as many as there
        are rows.
        """
        at = self._room_for(1, longest)
        self._rows[at], self._curves[at], self._pods[at] = row, curve, pods

    def extend(self, rows: Sequence[int], *, longest: int, curve: int) -> None:
        """The same for one more pod on each row, in this order."""
        most = max(longest, _SHORTEST)
        if len(rows) > most:
            self._dropped += self._length + len(rows) - most
            self._length, rows = 0, rows[-most:]
        at = self._room_for(len(rows), longest)
        end = at + len(rows)
        self._rows[at:end], self._curves[at:end], self._pods[at:end] = rows, curve, 1.0

    def rows_since(self, position: int) -> Ints | None:
        """The rows that changed after `position`, each once; None = they are not remembered, look at all."""
        changes = self.since(position)
        if changes is None:
            return None
        # A set, not np.unique: usually there are a few dozen.
        missed = set(changes.rows.tolist())
        return np.fromiter(missed, dtype=np.int64, count=len(missed))

    def since(self, position: int) -> RowChanges | None:
        """What happened after `position`; None = it is not remembered, look at all rows."""
        if position < self._dropped:
            return None
        which = slice(position - self._dropped, self._length)
        return RowChanges(self._rows[which], self._curves[which], self._pods[which])

    def _room_for(self, count: int, longest: int) -> int:
        """The place of the next entry; half of what is remembered goes where there is too much."""
        most = max(longest, _SHORTEST)
        if self._length + count > 2 * most:
            keep = min(self._length, most)
            for table in (self._rows, self._curves, self._pods):
                table[:keep] = table[self._length - keep : self._length].copy()
            self._dropped += self._length - keep
            self._length = keep
        at, self._length = self._length, self._length + count
        if self._length > len(self._rows):
            size = self._length + self._length // 2
            self._rows, self._curves = np.resize(self._rows, size), np.resize(self._curves, size)
            self._pods = np.resize(self._pods, size)
        return at


class LoadTables:
    """One row per node or profile, more rows than used: grown by halves. Held in float32: the time goes into reading
    the tables, and a forecast is not known to seven digits.

    share, base, soft : (n_nodes, n_resources, n_points) shares of capacity: all without live error, besides pods, kept
                        free
    capacity, per_capacity, error : (n_nodes, n_resources); error is live, a share of capacity
    fading            : (n_points,) share of the live error that is left
    usage             : (n_profiles, n_resources, n_points) base units
    curve_of          : by profile, a number that is another one whenever its usage is; profile_of_curve: those in use
    changes           : of rows of `share`
    version           : of all that every column depends on; capacity_version, error_version: of these alone
    """

    def __init__(self, n_resources: int, n_points: int) -> None:
        self.n_nodes, self.n_profiles = 0, 0
        self.share = np.zeros((0, n_resources, n_points), dtype=np.float32)
        self.base, self.soft, self.usage = (np.zeros_like(self.share) for _ in range(3))
        self.capacity = np.full((0, n_resources), np.nan)
        self.per_capacity = np.zeros((0, n_resources), dtype=np.float32)
        self.error = np.zeros((0, n_resources), dtype=np.float32)
        self.fading = np.zeros(n_points, dtype=np.float32)
        self.point_weights = np.zeros(n_points, dtype=np.float32)
        self.curve_of: list[int] = []
        self.profile_of_curve: dict[int, int] = {}
        self._next_curve = 0
        self.changes = LoadChanges()
        self.version = self.capacity_version = self.error_version = 0

    def set_error(self, error: AnyFloats, fading: AnyFloats) -> None:
        """(n_nodes, n_resources) and (n_points,)"""
        self.error[: len(error)] = error
        self.fading = np.asarray(fading, dtype=np.float32)
        self.error_version += 1

    def set_point_weights(self, point_weights: AnyFloats) -> None:
        """(n_points,)"""
        self.point_weights = np.asarray(point_weights, dtype=np.float32)
        self.version += 1

    def capacities_changed(self) -> None:
        """Of any node, or there are more nodes."""
        self.version += 1
        self.capacity_version += 1

    def set_usage(self, profile: int, usage: AnyFloats) -> None:
        """(n_resources, n_points) of a profile, new or not."""
        if profile == self.n_profiles:
            self.usage = grown(self.usage, profile + 1)
            self.n_profiles += 1
            self.curve_of.append(-1)
        self.usage[profile] = usage
        self.profile_of_curve.pop(self.curve_of[profile], None)
        self.curve_of[profile], self._next_curve = self._next_curve, self._next_curve + 1
        self.profile_of_curve[self.curve_of[profile]] = profile

    def ensure_node(self, node: int) -> bool:
        """Have a row for the node; whether there was none."""
        if node < self.n_nodes:
            return False
        n = node + 1
        self.share, self.base, self.soft = grown(self.share, n), grown(self.base, n), grown(self.soft, n)
        self.capacity = grown(self.capacity, n, fill=np.nan)
        self.per_capacity, self.error = grown(self.per_capacity, n), grown(self.error, n)
        self.n_nodes = n
        self.capacities_changed()
        return True

    def flat(self, rows: Ints | slice) -> Floats32:
        """Rows of `share` as vectors: (n_rows, n_resources * n_points)."""
        table = self.share[: self.n_nodes]
        return table[rows].reshape(-1, table.shape[1] * table.shape[2])


# Rows of the predicted load as they will be once pods of one profile have landed, before the tables know of it.
#
# A loop that places many like pods computes ahead and changes the tables once. The numbers are those that the tables
# will have, to the last bit: the same additions in the same order.


class LoadAfterLanding:
    """Valid while the tables are as they were when it was made."""

    def __init__(self, tables: LoadTables, profile: int, node_weights: Floats, counted: slice | Ints) -> None:
        """
        node_weights : (n_nodes, n_resources), see cluster.predicted.power_growth.power_growth
        counted      : points that may be a peak
        """
        self._tables, self._usage = tables, tables.usage[profile]
        self._node_weights, self._counted = node_weights, counted
        self._landed: dict[int, int] = {}
        self._rows: dict[int, Floats32] = {}  # (n_resources, n_points) of nodes that were looked at since

    def land(self, node: int) -> None:
        """One more pod of the profile is on a node."""
        self._landed[node] = self._landed.get(node, 0) + 1
        row = self._rows.get(node)
        if row is not None:
            row += self._change(node)

    def power_growth(self, nodes: Sequence[int]) -> Floats:
        """(len(nodes),) exact cost of one more pod on each; of nodes whose capacity is known."""
        tables, rows = self._tables, np.array(nodes, dtype=np.int64)
        share = tables.share[rows]
        for at, node in enumerate(nodes):
            if node in self._landed:
                share[at] = self._row(node)
        share += tables.error[rows][:, :, None] * tables.fading
        np.maximum(share, np.float32(0), out=share)
        pod = self._usage * tables.per_capacity[rows][:, :, None]
        return power_growth(share, pod, tables.point_weights, self._node_weights[rows])

    def highest(self, node: int, resource: int) -> np.float32:
        """The highest share of a resource on a node, as things are by now."""
        tables = self._tables
        row = self._row(node)[resource] if node in self._landed else tables.share[node, resource]
        by_point = row[self._counted]
        error = tables.error[node, resource]
        if error:
            by_point = by_point + error * tables.fading[self._counted]
        return np.float32(by_point.max(initial=0.0))

    def _row(self, node: int) -> Floats32:
        row = self._rows.get(node)
        if row is None:
            row = self._rows[node] = self._tables.share[node].copy()
            change = self._change(node)
            for _ in range(self._landed.get(node, 0)):
                row += change
        return row

    def _change(self, node: int) -> Floats32:
        return np.asarray(self._tables.per_capacity[node][:, None] * self._usage)
