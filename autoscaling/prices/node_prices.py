"""The price of each node, from the first source that knows it, and what nodes cost a month. No I/O.

An estimate, always: discounts, taxes, disks and traffic are not in it. So each sum names its sources, and counts the
nodes without a price.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from kube.objects.objects import NodeInfo

HOURS_PER_MONTH: Final = 730.0
"""8,760 hours of a year by twelve months, as the clouds' own calculators count."""

_GIB: Final = 2.0**30


@dataclass(frozen=True, slots=True)
class PricedNode:
    """What a price goes by.

    labels       : of the API object; empty = known from a history alone
    cores        : capacity; NaN = not known
    memory_bytes : capacity; NaN = not known
    group        : node group as `capacity` names it
    """

    name: str
    labels: Mapping[str, str]
    cores: float
    memory_bytes: float
    group: str

    @classmethod
    def of(cls, node: NodeInfo) -> PricedNode:
        """As the API server has it."""
        cores, memory = (node.capacity.get(name, node.allocatable.get(name, np.nan)) for name in ("cpu", "memory"))
        return cls(node.name, node.labels, cores, memory, shape_name(cores, memory))


def shape_name(cores: float, memory_bytes: float) -> str:
    """Name of the group of nodes of this size: `16 cores, 64 GiB`."""
    parts = [f"{cores:.3g} cores"] if np.isfinite(cores) else []
    if np.isfinite(memory_bytes):
        parts.append(f"{memory_bytes / _GIB:.3g} GiB")
    return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class NodePrice:
    """per_hour: in the currency of the report. source: in words, to follow `by`: `settings`"""

    per_hour: float
    source: str


class PriceSource(Protocol):
    """One place that knows prices of nodes, in the currency of the report."""

    def price_of(self, node: PricedNode) -> NodePrice | None:
        """Return the price of the node; None = this source does not know it."""


@dataclass(frozen=True, slots=True)
class MonthlyCost:
    """What some nodes cost in HOURS_PER_MONTH hours: an estimate.

    amount   : of the nodes with a price
    priced   : nodes with a price
    unpriced : nodes without, which `amount` leaves out
    sources  : source -> how many nodes have their price from it, the most first
    """

    amount: float
    currency: str
    priced: int
    unpriced: int
    sources: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """By name, as under `money` of every report."""
        return {
            "per_month": self.amount,
            "currency": self.currency,
            "nodes_with_price": self.priced,
            "nodes_without_price": self.unpriced,
            "sources": dict(self.sources),
            "is_estimate": True,
        }


@dataclass(frozen=True, slots=True)
class NodePrices:
    """Finished prices, as reports take them.

    nodes    : all that were asked for
    by_node  : name -> price, of the nodes that have one
    notes    : what a reader should know of the sources, such as one that does not answer
    """

    currency: str
    nodes: tuple[PricedNode, ...]
    by_node: Mapping[str, NodePrice]
    notes: tuple[str, ...] = field(default=())

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Names of the nodes without a price."""
        return tuple(node.name for node in self.nodes if node.name not in self.by_node)

    def cost(self, names: Collection[str] | None = None) -> MonthlyCost:
        """What these nodes cost a month; None = all."""
        asked = [node.name for node in self.nodes if names is None or node.name in names]
        prices = [self.by_node[name] for name in asked if name in self.by_node]
        return MonthlyCost(
            amount=HOURS_PER_MONTH * sum(price.per_hour for price in prices),
            currency=self.currency,
            priced=len(prices),
            unpriced=len(asked) - len(prices),
            sources=dict(Counter(price.source for price in prices).most_common()),
        )

    def to_json(self) -> dict[str, Any]:
        """What all nodes cost a month, and the notes: the beginning of `money` of every report."""
        return {**self.cost().to_json(), "notes": list(self.notes)}

    def by_node_json(self) -> dict[str, Any]:
        """The same with each node that has a price: what it costs a month, and by which source."""
        nodes = {
            name: {"per_month": HOURS_PER_MONTH * price.per_hour, "source": price.source}
            for name, price in self.by_node.items()
        }
        return {**self.to_json(), "nodes": nodes}

    def of_group(self, names: Iterable[str]) -> float | None:
        """Mean price of a node of a group for an hour, of its nodes that have one; None = none has."""
        known = [self.by_node[name].per_hour for name in names if name in self.by_node]
        return float(np.mean(known)) if known else None


def price_nodes(
    nodes: Iterable[PricedNode], sources: Sequence[PriceSource], currency: str, notes: Iterable[str] = ()
) -> NodePrices:
    """Ask the sources in their order for each node."""
    asked = tuple(nodes)
    by_node: dict[str, NodePrice] = {}
    for node in asked:
        found = next((price for source in sources if (price := source.price_of(node)) is not None), None)
        if found is not None:
            by_node[node.name] = found
    return NodePrices(currency, asked, by_node, tuple(notes))
