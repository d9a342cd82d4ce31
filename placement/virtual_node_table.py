"""Whose node is it, the cluster's own or a provider's, and which rows are virtual nodes of a provider, kept up to
date with the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from base.arrays import Bools
from cluster.follower import NodesAndPodsOnly
from cluster.predicted.array_rows import grown
from cluster.tables.changes import Change, NodeAdded, NodeChanged, NodeRemoved
from cluster.tables.state import ClusterState
from kube.objects.objects import NodeInfo
from placement.virtual_node_settings import OTHER, PROVIDER_TAINT, VIRTUAL_LABEL, Provider, ServerlessOptions

REAL: Final = -1


def is_labelled_virtual(node: NodeInfo) -> bool:
    """Whether its labels say that it is a provider's. https://virtual-kubelet.io/docs/setup/"""
    key, value = VIRTUAL_LABEL
    return node.labels.get(key) == value


class Claims:
    """providers: those of the options and OTHER; what is said of a node is an index among them, or REAL."""

    def __init__(self, options: ServerlessOptions) -> None:
        self.providers: Final[Sequence[Provider]] = options.all_providers()
        self._taints = frozenset(options.taints)
        self._other = next(i for i, one in enumerate(self.providers) if one.name == OTHER)

    def of(self, node: NodeInfo | None) -> int:
        """Return the owner of a node; a node that does not exist (any more) has none."""
        if node is None:
            return REAL
        values = {taint.value for taint in node.taints if taint.key == PROVIDER_TAINT}
        for number, provider in enumerate(self.providers):
            if provider.labels:
                if all(node.labels.get(key) == value for key, value in provider.labels.items()):
                    return number
            elif provider.name in values:
                return number
        is_virtual = is_labelled_virtual(node) or any(taint.key in self._taints for taint in node.taints)
        return self._other if is_virtual else REAL


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
