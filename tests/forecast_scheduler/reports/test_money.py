from __future__ import annotations

from typing import Any

import pytest

from autoscaling.prices.given_prices import GivenPrices
from autoscaling.prices.node_prices import price_nodes
from forecast_scheduler.reports.money import (
    HOW_TO_PRICE,
    amount_of_money,
    capacity_money_lines,
    look_money_lines,
    money_lines,
    request_money_lines,
)
from tests.autoscaling.prices.priced_nodes import node


def test_a_line_names_the_sum_the_sources_and_the_nodes_without_a_price() -> None:
    sources = [GivenPrices({"a": 1.0}, "settings"), GivenPrices({"b": 2.5}, "file p.csv")]
    nodes = [node("1", "a"), node("2", "a"), node("3", "b"), node("4", "c")]
    line, more, note = money_lines(price_nodes(nodes, sources, "EUR", ["note"]).to_json(), "more")
    by = "2 nodes by settings, 1 node by file p.csv, 1 node has no price"
    assert line == f"money: 3,285 EUR a month for 3 nodes (estimate; {by})"
    assert (more, note) == ("more", "note")


def test_without_prices_one_line_says_how_to_give_them() -> None:
    assert list(money_lines(price_nodes([node("1", "a")], [], "EUR").to_json(), "more")) == [HOW_TO_PRICE]


def test_small_sums_have_cents_and_none_is_minus_zero() -> None:
    shown = [amount_of_money(value, "USD") for value in (12.345, 99.999, -3.2, -0.001, 1234567.8)]
    assert shown == ["12.35 USD", "100 USD", "-3.20 USD", "0.00 USD", "1,234,568 USD"]


def figures(nodes: int, saved: float | None, over: int = 0) -> dict[str, Any]:
    """As `capacity --json` has them, of 20 recorded nodes."""
    prices = price_nodes([node(str(row), "a") for row in range(20)], [GivenPrices({"a": 0.2}, "settings")], "EUR")
    ours = {
        "nodes": nodes,
        "hot_share": 0.0,
        "pods_over_requests": over,
        "nodes_within_requests": 19,
        "mix": {"a": nodes},
    }
    return {
        "recorded": 20,
        "groups": {"a": 20},
        "target": 0.001,
        "rules": {"forecast": ours},
        "money": {**prices.to_json(), "saved_per_month": {"forecast": saved}},
    }


def test_fewer_nodes_are_worth_a_sum_only_beside_the_hot_share_and_the_requests() -> None:
    first, saved = capacity_money_lines(figures(17, 438.0))
    assert first.startswith("money: 2,920 EUR a month for 20 nodes (estimate; ")
    assert saved == "3 nodes fewer = 438 EUR a month less (hot 0.00 % of node half hours, target 0.10 %)"
    *_, needs = capacity_money_lines(figures(17, 438.0, over=5))
    assert needs.startswith("for that, requests have to be lowered first") and needs.endswith("it takes 19 nodes")


def test_no_saving_is_said_where_there_is_none() -> None:
    assert list(capacity_money_lines(figures(21, -146.0)))[1].startswith("nothing to save: the forecast needs 21 nodes")
    assert list(capacity_money_lines(figures(20, 30.0)))[1].startswith("cheaper nodes = 30.00 EUR a month less")
    assert len(list(capacity_money_lines(figures(17, None)))) == 1
    _, other = capacity_money_lines({**figures(17, 438.0), "groups": {"a": 10, "b": 10}})
    assert other.startswith("17 x a in place of 20 nodes = 438 EUR a month less")
    assert list(capacity_money_lines({**figures(17, 1.0), "money": None})) == []


@pytest.mark.parametrize(
    ("freed", "begins"), [(310.0, "lower requests free 310 EUR a month"), (-20.0, "higher requests take 20.00 EUR")]
)
def test_what_requests_free_is_no_cash(freed: float, begins: str) -> None:
    money = {**figures(17, 1.0)["money"], "freed_per_month": freed}
    _, line = request_money_lines({"money": money})
    assert line.startswith(begins) and ("no cash until nodes go" in line) == (freed > 0)
    look = {"money": money, "capacity": figures(17, 438.0), "requests": {"money": money}}
    assert [one[:24] for one in look_money_lines(look)] == [
        "money: 2,920 EUR a month",
        "3 nodes fewer = 438 EUR ",
        line[:24],
    ]
    assert list(look_money_lines({**look, "money": None})) == []
    assert len(list(look_money_lines({"money": money, "capacity": None, "requests": None}))) == 1
