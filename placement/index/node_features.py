"""Features that nodes declare (status.declaredFeatures), by row."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from base.arrays import Bools
from cluster.predicted.growing_arrays import grown
from kube.objects.objects import NodeInfo


class NodeFeatures:
    """One column per feature that a node has declared."""

    def __init__(self) -> None:
        self._n_rows = 0
        self._columns: dict[str, Bools] = {}
        self._of: dict[int, frozenset[str]] = {}

    def node_changed(self, row: int, node: NodeInfo | None) -> None:
        """The node of a row came, changed or went."""
        self._n_rows = max(self._n_rows, row + 1)
        before = self._of.pop(row, frozenset())
        now = frozenset() if node is None else node.features
        if now:
            self._of[row] = now
        for name in before ^ now:
            column = grown(self._columns.get(name, np.zeros(0, dtype=bool)), row + 1)
            column[row] = name in now
            self._columns[name] = column

    def declaring(self, names: Iterable[str]) -> Bools:
        """(n_rows,) nodes that declare all of these features."""
        nodes = np.ones(self._n_rows, dtype=bool)
        for name in names:
            nodes &= grown(self._columns.get(name, np.zeros(0, dtype=bool)), self._n_rows)[: self._n_rows]
        return nodes
