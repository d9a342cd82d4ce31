"""Which rows are virtual nodes of a provider, kept up to date with the nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from base.arrays import Bools
from cluster.follower import NodesAndPodsOnly
from cluster.predicted.growing_arrays import grown
from cluster.tables.changes import Change, NodeAdded, NodeChanged, NodeRemoved
from cluster.tables.state import ClusterState
from placement.virtual_nodes.node_ownership import REAL, Claims


class VirtualNodes(NodesAndPodsOnly):
    """Implements cluster.follower.Follower."""

    def __init__(self, state: ClusterState, claims: Claims) -> None:
        self._state, self._claims = state, claims
        self._is_virtual = np.zeros(0, dtype=bool)
        self.rebuild()

    @property
    def rows(self) -> Bools:
        """(n_rows,) nodes of a provider."""
        return grown(self._is_virtual, self._state.n_rows)[: self._state.n_rows]

    def apply(self, changes: Sequence[Change]) -> None:
        """Follow what happened to nodes."""
        for change in changes:
            match change:
                case NodeAdded(row) | NodeChanged(row) | NodeRemoved(row):
                    self._look_at(row)
                case _:
                    pass

    def rebuild(self) -> None:
        """Look at all nodes anew."""
        for row in range(self._state.n_rows):
            self._look_at(row)

    def _look_at(self, row: int) -> None:
        self._is_virtual = grown(self._is_virtual, row + 1)
        self._is_virtual[row] = self._claims.of(self._state.nodes[row]) != REAL
