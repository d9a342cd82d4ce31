from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.prices.given_prices import GivenPrices
from autoscaling.prices.node_prices import NodePrices, PricedNode, price_nodes
from autoscaling.prices.worth import CORE_IN_GIB, emptied_nodes, freed_worth
from tests.autoscaling.prices.priced_nodes import node

GIB = 2.0**30


def prices(*others: PricedNode) -> NodePrices:
    """Of 12 cores and 48 GiB. others: nodes without a price"""
    nodes = [node("one", "a", 4, 16), node("two", "b", 8, 32), *others]
    return price_nodes(nodes, [GivenPrices({"a": 0.2, "b": 0.4}, "settings")], "EUR")


def worth(cores: float, gib: float) -> float:
    found = freed_worth(prices(), cores, gib * GIB)
    assert found is not None
    return found


def test_all_of_the_nodes_is_worth_their_price_and_nothing_is_worth_nothing() -> None:
    assert worth(12, 48) == pytest.approx(0.6 * 730)
    assert worth(0, 0) == 0
    assert worth(-1, 0) == -worth(1, 0)
    assert worth(1, 0) == pytest.approx(CORE_IN_GIB * worth(0, 1))


def test_what_is_freed_on_nodes_without_a_price_is_not_worth_that_of_others() -> None:
    found = freed_worth(prices(node("three", "c", 36, 144)), 12, 48 * GIB)
    assert found == pytest.approx(0.6 * 730 / 4)


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 40)), min_size=1, max_size=5))
def test_the_parts_of_what_is_freed_add_up(parts: list[tuple[float, float]]) -> None:
    whole = worth(sum(cores for cores, _ in parts), sum(gib for _, gib in parts))
    assert math.isclose(whole, sum(worth(*part) for part in parts), rel_tol=1e-9, abs_tol=1e-9)


def test_without_prices_nothing_is_said() -> None:
    assert freed_worth(price_nodes([node("one", "a")], [], "EUR"), 1, GIB) is None


@pytest.mark.parametrize(
    ("moves", "empty"),
    [
        ([], ()),
        ([("p1", "a", "b")], ()),
        ([("p1", "a", "b"), ("p2", "a", "c")], ("a",)),
        ([("p1", "a", "b"), ("p2", "a", "c"), ("p3", "b", "a")], ()),  # another pod comes in their place
        ([("p3", "b", "a")], ("b",)),
        ([("p1", "a", "b"), ("p1", "b", "c"), ("p2", "a", "c"), ("p3", "b", "c")], ("a", "b")),
    ],
)
def test_only_nodes_that_all_pods_leave_are_empty(moves: list[tuple[str, str, str]], empty: tuple[str, ...]) -> None:
    assert emptied_nodes({"a": ["p1", "p2"], "b": ["p3"], "c": []}, moves) == empty
