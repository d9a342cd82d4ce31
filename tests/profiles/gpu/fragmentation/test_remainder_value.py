from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles.gpu.fragmentation.pod_shapes import PodShape, ShapeMix
from profiles.gpu.fragmentation.remainder_value import NodeWorth, prices_of_pieces
from tests.profiles.gpu.fragmentation import cases

HALF, WHOLE_ONE = PodShape(4000, 0, 1, 500), PodShape(8000, 0, 1, 1000)


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


@settings(max_examples=30)
@given(mix=cases.mixes, row=cases.rows)
def test_a_node_is_never_worth_more_than_its_cards(mix: ShapeMix, row: cases.Row) -> None:
    worth = NodeWorth(mix).worth(cases.node_states([row]))[0]
    assert -1e-9 <= worth <= len(row[3]) + 1e-9
