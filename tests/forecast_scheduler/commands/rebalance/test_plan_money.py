from __future__ import annotations

import pytest

from forecast_scheduler.commands.rebalance.plan_once import plan_money_lines


@pytest.mark.parametrize(
    ("emptied", "unpriced", "saved", "said"),
    [
        ([], 0, 0.0, "no node gets empty by these moves: 0.00 EUR a month less, they keep nodes cool"),
        (["a", "b"], 0, 300.0, "2 nodes could go = 300 EUR a month less"),
        (["a", "b"], 1, 150.0, "2 nodes could go = 150 EUR a month less, of 1 node: the others have no price"),
        (["a"], 1, None, "1 node could go, without a price"),
    ],
)
def test_nodes_without_a_price_are_not_said_to_save_nothing(
    emptied: list[str], unpriced: int, saved: float | None, said: str
) -> None:
    money = {
        "per_month": 900.0,
        "currency": "EUR",
        "nodes_with_price": 6,
        "nodes_without_price": unpriced,
        "sources": {"settings": 6},
        "notes": [],
        "emptied_nodes": emptied,
        "emptied_without_price": unpriced,
        "saved_per_month": saved,
    }
    assert list(plan_money_lines(money, n_moves=3))[1] == said
