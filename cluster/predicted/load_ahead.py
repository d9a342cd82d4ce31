"""Rows of the predicted load as they will be once pods of one profile have landed, before the tables know of it.

A loop that places many like pods computes ahead and changes the tables once. The numbers are those that the tables will
have, to the last bit: the same additions in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from base.arrays import Floats, Floats32, Ints
from cluster.predicted.load_tables import LoadTables
from cluster.predicted.power_growth import power_growth


class LoadAhead:
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
