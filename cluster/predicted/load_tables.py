"""The arrays that the predicted load is made of, the log of what changed in them, and versions of the rest."""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Floats32, Ints
from cluster.predicted.growing_arrays import grown
from cluster.predicted.load_changes import LoadChanges


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
