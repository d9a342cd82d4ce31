"""Money in a line of a report: what it is, from which source, and how many nodes have no price."""

from __future__ import annotations

from autoscaling.prices.node_prices import MonthlyCost, NodePrices

HOW_TO_PRICE = (
    "money: no node has a price; set prices.per_hour, prices.file or prices.opencost (docs/use/money.md) to see costs"
)


def amount_of_money(value: float, currency: str) -> str:
    """Such as `3,412 EUR`; below 100 with cents. Never `-0`."""
    digits = 2 if abs(value) < 99.995 else 0
    rounded = round(value, digits)
    return f"{rounded + 0.0:,.{digits}f} {currency}"


def estimate_words(cost: MonthlyCost) -> str:
    """Such as `estimate; 18 nodes by settings, 2 nodes have no price`."""
    by = [f"{_nodes(count)} by {source}" for source, count in cost.sources.items()]
    missing = [f"{_nodes(cost.unpriced)} {'has' if cost.unpriced == 1 else 'have'} no price"] if cost.unpriced else []
    return f"estimate; {', '.join(by + missing)}"


def money_lines(prices: NodePrices) -> list[str]:
    """What all nodes cost a month, and what is to be known of the sources."""
    cost = prices.cost()
    if cost.says_nothing:
        return [*prices.notes, HOW_TO_PRICE]
    what = f"money: {amount_of_money(cost.amount, cost.currency)} a month for {_nodes(cost.priced)}"
    return [f"{what} ({estimate_words(cost)})", *prices.notes]


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count:,} nodes"
