"""What all quotas together may use where they share the nodes: what these can allocate, less what other pods have."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from forecast.arrays import Ints
from kube.objects.objects import NodeInfo
from kube.tables.state import ClusterState
from tenants.ledger import QuotaLedger
from tenants.quota_tree import BOUNDLESS, CARD_UNITS, CARDS, NO_QUOTA


def pool_of_nodes(
    ledger: QuotaLedger,
    state: ClusterState,
    *,
    counts: Callable[[NodeInfo], bool],
    cards_of: Callable[[NodeInfo], float],
    card_resources: Collection[str],
) -> Ints:
    """(n_resources,) units, as the ledger's tree names the resources. What nodes do not offer has no bound.

    Shares of cards of pods without a quota do not count: they are no request that nodes know of.

    counts   : whether quotas share what a node can allocate
    cards_of : cards that a node has
    """
    tree = ledger.tree
    rows = [row for row, node in enumerate(state.nodes) if node is not None and counts(node)]
    of_tenants = ledger.used[tree.parent == NO_QUOTA].sum(axis=0)
    pool = np.full(len(tree.resources), BOUNDLESS, dtype=np.int64)
    for at, name in enumerate(tree.resources):
        kinds = card_resources if name == CARDS else (name,)
        columns = [state.kinds[kind] for kind in kinds if kind in state.kinds]
        if name == CARDS:
            nodes = (state.nodes[row] for row in rows)
            offered = round(CARD_UNITS * sum(cards_of(node) for node in nodes if node is not None))
        elif columns:
            offered = int(state.allocatable_units[rows][:, columns].sum())
        else:
            continue
        requested = (CARD_UNITS if name == CARDS else 1) * int(state.requested_units[rows][:, columns].sum())
        pool[at] = offered - max(0, requested - int(of_tenants[at]))
    return pool
