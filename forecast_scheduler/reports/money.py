"""Money in a line of a report: what it is, from which source, and how many nodes have no price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from forecast_scheduler.reports.table_format import printable
from scorer.load_scale import percent

HOW_TO_PRICE = (
    "money: no node has a price; set prices.per_hour, prices.file or prices.opencost (docs/use/money.md) to see costs"
)


NODES_STAY = "placing alone takes no node away: `forecast-scheduler capacity` says how many each rule needs"


def amount_of_money(value: float, currency: str) -> str:
    """Such as `3,412 EUR`; below 100 with cents. Never `-0`."""
    digits = 2 if abs(value) < 99.995 else 0
    rounded = round(value, digits)
    return f"{rounded + 0.0:,.{digits}f} {currency}"


def estimate_words(money: Mapping[str, Any]) -> str:
    """Such as `estimate; 18 nodes by settings, 2 nodes have no price`."""
    by = [f"{nodes_text(count)} by {source}" for source, count in money["sources"].items()]
    missing = money["nodes_without_price"]
    without = [f"{nodes_text(missing)} {'has' if missing == 1 else 'have'} no price"] if missing else []
    return f"estimate; {', '.join(by + without)}"


def money_lines(money: Mapping[str, Any], *more: str) -> Iterator[str]:
    """What all nodes cost a month, further lines about it, and what is to be known of the sources.

    money : as reports have it in their JSON (autoscaling.prices.node_prices, NodePrices.to_json)
    """
    if money["nodes_with_price"]:
        what = f"{monthly(money['per_month'], money)} for {nodes_text(money['nodes_with_price'])}"
        yield f"money: {what} ({estimate_words(money)})"
        yield from more
    else:
        yield HOW_TO_PRICE
    yield from map(printable, money["notes"])


def capacity_money_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """What the nodes that the forecast needs cost less than the recorded ones. figures: of `capacity --json`"""
    if (money := figures["money"]) is not None:
        yield from money_lines(money, *_saved(figures, money))


def request_money_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """What lower requests free. figures: of `requests --json`"""
    yield from money_lines(figures["money"], *_freed(figures["money"]))


def look_money_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """What the nodes cost, and what fewer nodes and lower requests are worth. figures: of `look --json`"""
    if (money := figures["money"]) is None:
        return
    capacity, requests = figures["capacity"], figures["requests"]
    saved = () if capacity is None or capacity["money"] is None else _saved(capacity, capacity["money"])
    freed = () if requests is None else _freed(requests["money"])
    yield from money_lines(money, *saved, *freed)


def _freed(money: Mapping[str, Any]) -> Iterator[str]:
    if (freed := money["freed_per_month"]) is not None:
        worth = f"{monthly(abs(freed), money)} of these nodes, by cores and memory"
        if freed >= 0:
            yield f"lower requests free {worth}: room for other pods, and no cash until nodes go"
        else:
            yield f"higher requests take {worth}: room that other pods could have, and no cost until nodes are added"


def _saved(figures: Mapping[str, Any], money: Mapping[str, Any]) -> Iterator[str]:
    recorded, ours = figures["recorded"], figures["rules"].get("forecast")
    saved = money["saved_per_month"].get("forecast")
    if ours is None or ours["nodes"] is None or saved is None:
        return
    fewer = recorded - ours["nodes"]
    # The search takes no number that misses the target: a saving beyond it would be bought with hot nodes.
    share, target = (percent(value, digits=2) for value in (ours["hot_share"], figures["target"]))
    hot = f"hot {share} of node half hours, target {target}"
    if len(ours["mix"]) < len(figures["groups"]):
        mix = "; ".join(f"{count} x {name}" for name, count in ours["mix"].items())
        yield f"{printable(mix)} in place of {recorded:,} nodes = {monthly(saved, money)} less ({hot})"
    elif fewer > 0:
        yield f"{nodes_text(fewer)} fewer = {monthly(saved, money)} less ({hot})"
    elif saved > 0:
        yield f"cheaper nodes = {monthly(saved, money)} less ({hot})"
    else:
        yield f"nothing to save: the forecast needs {nodes_text(ours['nodes'])} of the {recorded:,} recorded ({hot})"
        return
    if ours["pods_over_requests"]:
        kept = ours["nodes_within_requests"]
        yield (
            f"for that, requests have to be lowered first (`forecast-scheduler requests`): with them as they are it "
            f"takes {'more nodes' if kept is None else nodes_text(kept)}"
        )


def monthly(value: float, money: Mapping[str, Any]) -> str:
    """Such as `412 EUR a month`."""
    return f"{amount_of_money(value, money['currency'])} a month"


def nodes_text(count: int) -> str:
    """Such as `1 node`, `1,200 nodes`."""
    return "1 node" if count == 1 else f"{count:,} nodes"
