from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from base.arrays import Floats
from scorer.scores.balanced_allocation import balanced_allocation_score
from scorer.scores.weighted_balance import balance, balance_change_score, balance_score

millis = arrays(np.int64, (4, 3), elements=st.integers(0, 20_000))


def by_definition(shares: Floats, weights: Floats) -> float:
    """One node, straight from the formula; resources without weight left out before."""
    mean = np.average(shares, weights=weights)
    return float((1 - np.sqrt(np.average((shares - mean) ** 2, weights=weights))) * 100)


def test_balance_is_over_the_resources_there_are_and_75_where_nothing_changes() -> None:
    requested = np.array([[2.0, 4.0, 3.0], [2.0, 4.0, 0.0], [2.0, 4.0, 0.0]])
    capacity = np.array([[4.0, 8.0, 8.0], [4.0, 8.0, 0.0], [4.0, 8.0, np.nan]])
    with_gpu, without, unknown = balance(requested, capacity, np.array([1.0, 1.0, 3.0]))
    assert with_gpu < without == unknown == 100
    assert balance(requested[:, :1], capacity[:, :1], np.ones(1)).tolist() == [100, 100, 100]
    requested = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    score = balance_change_score(requested, np.array([0.0, 2.0]), np.full((3, 2), 4.0), np.ones(2))
    # without: 100, 75, 75; with: 75, 100, 50
    assert score.tolist() == [62.5, 87.5, 62.5]
    assert balance_score(requested, np.array([0.0, 2.0]), np.full((3, 2), 4.0), np.ones(2)).tolist() == [75, 100, 50]


@given(requested=millis, pod=arrays(np.int64, 3, elements=st.integers(0, 5_000)), allocatable=millis)
def test_with_equal_weights_it_is_balanced_allocation_but_for_truncation(
    requested: Floats, pod: Floats, allocatable: Floats
) -> None:
    assume((pod > 0).any())
    cores = np.array([1 / 1000, 1, 1])
    columns = requested * cores, pod * cores, allocatable * cores
    exact = balance_change_score(*columns, np.full(3, 2.0))
    # Each of the two balances loses up to a point, then half of it, then up to half a point in the last division.
    assert (np.abs(exact - balanced_allocation_score(*columns)) <= 1.0 + 1e-9).all()


@given(requested=millis, allocatable=millis, weights=arrays(float, 3, elements=st.floats(0.01, 100)))
def test_balance_agrees_with_the_definition_node_by_node(
    requested: Floats, allocatable: Floats, weights: Floats
) -> None:
    result = balance(requested.astype(float), allocatable.astype(float), weights)
    for node, row in enumerate(allocatable):
        there = row > 0
        shares = np.minimum(requested[node, there] / row[there], 1.0)
        expected = by_definition(shares, weights[there]) if there.any() else 100.0
        assert result[node] == pytest.approx(expected, abs=1e-6)
    assert (result >= 50).all()
    assert (result <= 100).all()
