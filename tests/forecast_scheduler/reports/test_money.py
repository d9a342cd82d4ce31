from __future__ import annotations

from autoscaling.prices.given_prices import GivenPrices
from autoscaling.prices.node_prices import price_nodes
from forecast_scheduler.reports.money import HOW_TO_PRICE, amount_of_money, money_lines
from tests.autoscaling.prices.priced_nodes import node


def test_a_line_names_the_sum_the_sources_and_the_nodes_without_a_price() -> None:
    sources = [GivenPrices({"a": 1.0}, "settings"), GivenPrices({"b": 2.5}, "file p.csv")]
    nodes = [node("1", "a"), node("2", "a"), node("3", "b"), node("4", "c")]
    line, note = money_lines(price_nodes(nodes, sources, "EUR", ["note"]))
    by = "2 nodes by settings, 1 node by file p.csv, 1 node has no price"
    assert (line, note) == (f"money: 3,285 EUR a month for 3 nodes (estimate; {by})", "note")


def test_without_prices_one_line_says_how_to_give_them() -> None:
    assert money_lines(price_nodes([node("1", "a")], [], "EUR")) == [HOW_TO_PRICE]


def test_small_sums_have_cents_and_none_is_minus_zero() -> None:
    shown = [amount_of_money(value, "USD") for value in (12.345, 99.999, -3.2, -0.001, 1234567.8)]
    assert shown == ["12.35 USD", "100 USD", "-3.20 USD", "0.00 USD", "1,234,568 USD"]
