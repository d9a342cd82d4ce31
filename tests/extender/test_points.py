"""Scores become whole points around the median, of a fixed size; replies may be shortened."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.points import points_of, shortened

ALL = np.ones(5, dtype=bool)


@pytest.mark.parametrize(
    ("scores", "size", "points"),
    [
        pytest.param([70.0, 72.0, 71.0, 40.4, 75.6], 1.0, [-1, 1, 0, -31, 5], id="above or below the median"),
        pytest.param([70.0, 70.4, 69.6, 70.2, 69.9], 1.0, [0, 0, 0, 0, 0], id="nearly equal"),
        pytest.param([60.0, 50.0, 40.0], 1.0, [10, 0, -10], id="few"),
        pytest.param([60.0, 50.0, 40.0, 99.0, 1.0], 1.0, [10, 0, -10, 49, -49], id="as large beside others"),
        pytest.param([80.0, 50.0, 45.0], 5.0, [6, 0, -1], id="coarser"),
    ],
)
def test_a_point_has_a_fixed_size(scores: list[float], size: float, points: list[int]) -> None:
    assert points_of(np.array(scores), ALL[: len(scores)], size).tolist() == points


def test_a_node_of_which_nothing_is_known_gets_nothing_and_does_not_move_the_median() -> None:
    known = np.array([True, True, True, False, False])
    assert points_of(np.array([60.0, 50.0, 40.0, 0.0, 0.0]), known, 1.0).tolist() == [10, 0, -10, 0, 0]
    assert not points_of(np.zeros(5), ~ALL, 1.0).any()


@pytest.mark.parametrize(
    ("points", "longest", "named"),
    [
        ([0, 0, 0], 10, []),
        ([3, 0, -2], 10, [0, 2]),
        ([3, 0, -2], 0, [0, 2]),
        ([5, 4, 3, -1, -2, -9], 4, [0, 1, 4, 5]),
        ([5, 4, 3, 2, 1, -9], 4, [0, 1, 2, 5]),
        ([9, -1, -2, -3, -4, -5], 4, [0, 3, 4, 5]),
        ([5, 5, 5, 5], 2, [0, 1]),
        ([5, -5, -4], 1, [1]),
    ],
)
def test_the_best_and_the_worst_are_named(points: list[int], longest: int, named: list[int]) -> None:
    assert shortened(np.array(points), longest).tolist() == named


@given(
    points=st.lists(st.integers(-50, 50), max_size=60).map(lambda p: np.array(p, dtype=np.int64)),
    longest=st.integers(0, 70),
)
def test_shortening_never_turns_the_order_of_two_nodes_round(points: np.ndarray, longest: int) -> None:
    kept = np.zeros_like(points)
    named = shortened(points, longest)
    kept[named] = points[named]
    assert len(named) <= longest or longest == 0
    order = np.lexsort((kept, points))  # of equal nodes some may be named and others not
    assert (np.diff(kept[order]) >= 0).all()
    if longest == 0:
        assert (kept == points).all()
