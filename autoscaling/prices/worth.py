"""What fewer nodes, and lower requests, are worth a month. Pure.

Freed requests are no cash: the bill falls only when nodes go. What they are worth is their part of the price of the
nodes that they were requested on:

    worth = price * (w * cores + GiB) / (w * all cores + all GiB)

price, all cores, all GiB : of all nodes with a price, capacity
w                         : GiB that cost as much as a core, CORE_IN_GIB

So all cores and all memory together are worth the price of the nodes, and the parts of several services add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from autoscaling.prices.node_prices import MonthlyCost, NodePrices

CORE_IN_GIB: Final = 0.031611 / 0.004237
"""7.46: OpenCost's default prices of a core and of a GiB for an hour (opencost/opencost, configs/default.json)."""

_GIB: Final = 2.0**30


@dataclass(frozen=True, slots=True)
class FreedWorth:
    """per_month: in the currency of `nodes`; negative = more is requested. nodes: cost of all nodes, the estimate's
    base"""

    per_month: float
    nodes: MonthlyCost

    def to_json(self) -> dict[str, Any]:
        """Under `money` of `requests --json`."""
        return {"freed_per_month": self.per_month, **self.nodes.to_json()}


def freed_worth(prices: NodePrices, cores: float, memory_bytes: float) -> FreedWorth | None:
    """What requests that are lower by so much free on the nodes; None = no node has a price and a size."""
    sized = [
        node
        for node in prices.nodes
        if node.name in prices.by_node and np.isfinite(node.cores) and np.isfinite(node.memory_bytes)
    ]
    whole = sum(_weight(node.cores, node.memory_bytes) for node in sized)
    if whole <= 0:
        return None
    cost = prices.cost({node.name for node in sized}).amount
    return FreedWorth(cost * _weight(cores, memory_bytes) / whole, prices.cost())


def _weight(cores: float, memory_bytes: float) -> float:
    """In GiB."""
    return CORE_IN_GIB * cores + memory_bytes / _GIB
