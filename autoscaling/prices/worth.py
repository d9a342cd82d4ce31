"""What lower requests are worth a month, and which nodes moves would empty. Pure.

Freed requests are no cash: the bill falls only when nodes go. What they are worth is their part of the price of the
nodes that they were requested on:

    worth = price * (w * cores + GiB) / (w * all cores + all GiB)

price              : of all nodes that have one
all cores, all GiB : capacity of all nodes, with a price or without: requests are freed on these, too
w                  : GiB that cost as much as a core, CORE_IN_GIB

So all cores and all memory together are worth the price of the nodes and never more, and the parts of several services
add up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import numpy as np

from autoscaling.prices.node_prices import NodePrices

CORE_IN_GIB: Final = 0.031611 / 0.004237
"""7.46: OpenCost's default prices of a core and of a GiB for an hour (opencost/opencost, configs/default.json)."""

_GIB: Final = 2.0**30


def freed_worth(prices: NodePrices, cores: float, memory_bytes: float) -> float | None:
    """What requests that are lower by so much free on the nodes, a month; negative = they are higher.

    None = no node has a price and a size.
    """
    sized = [node for node in prices.nodes if np.isfinite(node.cores) and np.isfinite(node.memory_bytes)]
    whole, cost = (
        sum(_weight(node.cores, node.memory_bytes) for node in sized),
        prices.cost({one.name for one in sized}),
    )
    return cost.amount * _weight(cores, memory_bytes) / whole if whole > 0 and cost.priced else None


def emptied_nodes(pods_on: Mapping[str, Collection[str]], moves: Iterable[tuple[str, str, str]]) -> tuple[str, ...]:
    """Nodes that have pods and none after the moves: only these could go.

    pods_on : node -> UIDs of its pods, without those that go with it (DaemonSets, static pods)
    moves   : UID, node before, node after
    """
    left = {node: set(pods) for node, pods in pods_on.items() if pods}
    had = tuple(left)
    for uid, before, after in moves:
        left.setdefault(before, set()).discard(uid)
        left.setdefault(after, set()).add(uid)
    return tuple(node for node in had if not left[node])


def _weight(cores: float, memory_bytes: float) -> float:
    """Return what of a node its price goes by, with cores counted in GiB (CORE_IN_GIB)."""
    return CORE_IN_GIB * cores + memory_bytes / _GIB
