from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from autoscaling.prices.given_prices import GivenPrices
from autoscaling.prices.list_prices import ListPrices, shipped_table
from autoscaling.prices.node_prices import HOURS_PER_MONTH, PricedNode, price_nodes, shape_name
from kube.objects.objects import NodeInfo
from tests.autoscaling.prices.priced_nodes import TYPE, node

PRICES = GivenPrices({"a": 0.1, "b": 0.25, "4 cores, 16 GiB": 0.4}, "settings")


def test_the_first_source_that_knows_a_node_wins_and_is_named() -> None:
    nodes = [node("one", "a"), node("two", "m5.xlarge"), node("three", "m5.xlarge", cores=8)]
    found = price_nodes(nodes, [PRICES, ListPrices(shipped_table())], "USD")
    assert {name: (price.per_hour, price.source) for name, price in found.by_node.items()} == {
        "one": (0.1, "settings"),
        "two": (0.4, "settings"),  # by its group
        "three": (0.192, "list price of AWS, us-east-1, 2026-07-20"),
    }


def test_nodes_without_a_price_are_counted_and_named() -> None:
    found = price_nodes([node("one", "a"), node("two", "unknown", cores=3)], [PRICES], "EUR")
    cost = found.cost()
    assert (cost.priced, cost.unpriced, cost.currency, found.unpriced) == (1, 1, "EUR", ("two",))
    assert cost.amount == 0.1 * 730
    assert found.cost({"two"}).priced == 0
    assert found.to_json() == {
        "per_month": 0.1 * 730,
        "currency": "EUR",
        "nodes_with_price": 1,
        "nodes_without_price": 1,
        "sources": {"settings": 1},
        "is_estimate": True,
        "notes": [],
    }


@given(kinds=st.lists(st.sampled_from(["a", "b", "c", "m5.xlarge"]), max_size=12), split=st.integers(0, 12))
def test_the_parts_of_the_nodes_cost_what_all_do(kinds: list[str], split: int) -> None:
    nodes = [node(f"n{number}", kind, cores=2) for number, kind in enumerate(kinds)]
    found = price_nodes(nodes, [PRICES, ListPrices(shipped_table())], "USD")
    first, rest = ({one.name for one in part} for part in (nodes[:split], nodes[split:]))
    whole, parts = found.cost(), [found.cost(first), found.cost(rest)]
    assert math.isclose(whole.amount, sum(part.amount for part in parts))
    assert whole.priced == sum(part.priced for part in parts) == sum(whole.sources.values())
    assert whole.priced + whole.unpriced == len(nodes)
    assert whole.amount == HOURS_PER_MONTH * sum(price.per_hour for price in found.by_node.values())


def test_a_group_has_the_mean_price_of_its_nodes_that_have_one() -> None:
    found = price_nodes([node("one", "a"), node("two", "b"), node("three", cores=1)], [PRICES], "EUR")
    assert found.of_group(["one", "two", "three"]) == (0.1 + 0.25) / 2
    assert found.of_group(["three"]) is None


def test_a_node_of_the_api_server_has_its_capacity_and_else_what_is_allocatable() -> None:
    info = NodeInfo("n", {TYPE: "a"}, {}, (), False, True, {"cpu": 4.0}, {"cpu": 3.9, "memory": 15.0 * 2**30})
    assert PricedNode.of(info) == PricedNode("n", {TYPE: "a"}, 4.0, 15.0 * 2**30, "4 cores, 15 GiB")
    assert shape_name(math.nan, math.nan) == ""
