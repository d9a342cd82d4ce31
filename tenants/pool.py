"""What all quotas together may use where they share the nodes: what these can allocate, less what other pods have."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from base.arrays import Ints
from cluster.tables.state import ClusterState
from kube.objects.objects import NodeInfo
from tenants.ledger import QuotaLedger
from tenants.quota_tree import BOUNDLESS, CARD_UNITS, CARDS, EMPTY, NO_QUOTA


class PoolOfNodes:
    """Asked under the lock of the tables.

    Shares of cards of pods without a quota do not count: they are no request that nodes know of.
    """

    def __init__(
        self,
        ledger: QuotaLedger,
        state: ClusterState,
        *,
        counts: Callable[[NodeInfo], bool],
        cards_of: Callable[[NodeInfo], float],
        card_resources: Collection[str],
    ) -> None:
        """
        counts   : whether quotas share what a node can allocate
        cards_of : cards that a node has
        """
        self._ledger, self._state = ledger, state
        self._counts, self._cards_of, self._card_resources = counts, cards_of, tuple(card_resources)
        self._known = EMPTY, -1
        self._rows: Ints = np.zeros(0, dtype=np.int64)
        self._offered: list[int] = []
        self._columns: list[list[int]] = []

    def __call__(self) -> Ints:
        """(n_resources,) units, as the ledger's tree names the resources. What nodes do not offer has no bound."""
        ledger, tree = self._ledger, self._ledger.tree
        if self._known != (tree, ledger.nodes_version):
            self._known = tree, ledger.nodes_version
            self._look()
        of_tenants = ledger.used[tree.parent == NO_QUOTA].sum(axis=0) - ledger.on_no_node
        pool = np.full(len(tree.resources), BOUNDLESS, dtype=np.int64)
        for at, (name, offered, columns) in enumerate(zip(tree.resources, self._offered, self._columns, strict=True)):
            if offered >= 0:
                units = CARD_UNITS if name == CARDS else 1
                requested = units * int(self._state.requested_units[self._rows][:, columns].sum())
                pool[at] = offered - max(0, requested - int(of_tenants[at]))
        return pool

    def _look(self) -> None:
        """At the nodes: which count, and what they offer of each resource together, -1 = they do not name it."""
        state, tree = self._state, self._ledger.tree
        nodes = {row: node for row, node in enumerate(state.nodes) if node is not None and self._counts(node)}
        self._rows = np.fromiter(nodes, dtype=np.int64, count=len(nodes))
        self._offered, self._columns = [], []
        for name in tree.resources:
            kinds = self._card_resources if name == CARDS else (name,)
            columns = [state.kinds[kind] for kind in kinds if kind in state.kinds]
            self._columns.append(columns)
            if name == CARDS:
                self._offered.append(round(CARD_UNITS * sum(map(self._cards_of, nodes.values()))))
            elif columns:
                self._offered.append(int(state.allocatable_units[self._rows][:, columns].sum()))
            else:
                self._offered.append(-1)
