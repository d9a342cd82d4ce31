from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.profiles.gpu.fragmentation.remainder_value import NodeWorth, prices_of_pieces
from scheduler.profiles.gpu.fragmentation.shapes import PodShape, ShapeMix
from tests.scheduler.profiles.gpu.fragmentation import cases

HALF, WHOLE_ONE = PodShape(4000, 0, 1, 500), PodShape(8000, 0, 1, 1000)
EVEN = NodeWorth(ShapeMix((HALF, WHOLE_ONE), np.array([0.5, 0.5])))


@pytest.mark.parametrize(
    ("sizes", "demand", "prices"),
    [
        ([1000], [1], [1]),
        ([500, 1000], [4, 1], [1 / 2, 1]),
        ([400, 1000], [1, 1], [1 / 2, 1]),  # two to a card, whatever is left over
        ([300, 700], [1, 1], [1 / 3, 2 / 3]),  # as many of both: they share cards, and so the price of one
        ([300, 700], [9, 1], [1 / 3, 2 / 3]),  # more of the small ones: three of them pay for a card
        ([300, 700], [1, 9], [0, 1]),  # hardly any small ones: what the big ones leave is worth nothing
    ],
)
def test_prices_of_pieces(sizes: list[int], demand: list[float], prices: list[float]) -> None:
    found = prices_of_pieces(np.array(sizes), np.array(demand, dtype=np.float64))
    assert found @ np.array(demand) == pytest.approx(np.array(prices) @ np.array(demand))
    if sizes != [300, 700] or demand != [1, 1]:  # where the prices are the only ones
        assert found == pytest.approx(prices)


def _ways_to_cut(sizes: list[int]) -> list[tuple[int, ...]]:
    most = [range(1000 // size + 1) for size in sizes]
    return [way for way in itertools.product(*most) if np.dot(way, sizes) <= 1000]


@settings(max_examples=30)
@given(
    demands=st.dictionaries(
        st.sampled_from([130, 210, 300, 470, 500, 810, 1000]), st.integers(1, 9), min_size=1, max_size=4
    )
)
def test_no_way_to_cut_a_card_is_worth_more_than_the_card(demands: dict[int, int]) -> None:
    sizes = sorted(demands)
    prices = prices_of_pieces(np.array(sizes), np.array([demands[size] for size in sizes], dtype=np.float64))
    assert prices.min() >= -1e-9
    assert max(np.dot(way, prices) for way in _ways_to_cut(sizes)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("cpu", "cards", "worth"),
    [
        (64_000, [1000, 1000], 2),
        (64_000, [500, 1000], 1.5),
        (64_000, [400], 0),  # nobody asks for as little
        (64_000, [], 0),
        (0, [1000, 1000], 0),  # nobody runs without cores
    ],
)
def test_what_is_left_of_a_node_is_worth(cpu: int, cards: list[int], worth: float) -> None:
    assert EVEN.worth(cases.node_states([(cpu, 0, 0, cards)])) == pytest.approx([worth], abs=0.01)


@settings(max_examples=30)
@given(mix=cases.mixes, rows=cases.nodes, shape=cases.shapes)
def test_what_is_lost_is_the_difference(mix: ShapeMix, rows: list[cases.Row], shape: PodShape) -> None:
    worth = NodeWorth(mix)
    room = [row for row in rows if cases.slow_fits(shape, *row)]
    for row in room:
        node = cases.node_states([row])
        before = worth.worth(node)
        if not shape.is_shared:
            left = cases.with_pod(row, shape, cases.with_whole(row[3], shape.count))
            assert worth.lost_by_whole(shape, node) == pytest.approx(before - worth.worth(cases.node_states([left])))
            continue
        for card, free in enumerate(row[3]):
            lost = worth.lost_by_card(shape, node)[0, card]
            if free < shape.milli:
                assert lost == np.inf
            else:
                left = cases.with_pod(row, shape, cases.with_part(row[3], card, shape.milli))
                assert lost == pytest.approx(before[0] - worth.worth(cases.node_states([left]))[0])


@settings(max_examples=30)
@given(mix=cases.mixes, row=cases.rows)
def test_a_node_is_never_worth_more_than_its_cards(mix: ShapeMix, row: cases.Row) -> None:
    worth = NodeWorth(mix).worth(cases.node_states([row]))[0]
    assert -1e-9 <= worth <= len(row[3]) + 1e-9
