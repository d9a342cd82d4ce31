from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scorer.scores.predicted_peak_score import points_of_share, predicted_peak_score

NAN = np.nan
NONE = np.full(4, NAN)
NO = np.zeros(4, dtype=bool)


@pytest.mark.parametrize(
    ("share", "points"), [(0.0, 100), (0.25, 75), (0.9, 10), (1.0, 10 / np.e), (1.9, 10 * np.exp(-10)), (-0.1, 100)]
)
def test_points_of_share(share: float, points: float) -> None:
    assert points_of_share(np.array([share]))[0] == pytest.approx(points)


def test_value_and_slope_agree_at_the_bend() -> None:
    below, at, above = points_of_share(np.array([0.9 - 1e-6, 0.9, 0.9 + 1e-6]))
    assert below - at == pytest.approx(1e-4, rel=1e-3)
    assert at - above == pytest.approx(1e-4, rel=1e-3)


@given(st.floats(0, 5), st.floats(1e-6, 1))
def test_a_fuller_node_always_scores_less(share: float, more: float) -> None:
    less, full = points_of_share(np.array([share + more, share]))
    assert less < full


def test_without_a_short_list_points_alone_decide() -> None:
    score = predicted_peak_score(np.array([0.1, 0.5, 0.3, 0.2]), NONE, NO)
    np.testing.assert_allclose(score, [90, 50, 70, 80])


def test_the_short_list_keeps_its_points_but_is_ordered_by_the_exact_cost() -> None:
    share = np.array([0.1, 0.2, 0.3, 0.25])
    score = predicted_peak_score(share, np.array([3.0, 1.0, 2.0, NAN]), NO)
    np.testing.assert_allclose(score, [70, 90, 80, 75])


def test_equal_exact_costs_get_equal_points_and_the_best_of_theirs() -> None:
    share = np.array([0.1, 0.2, 0.3, 0.4])
    score = predicted_peak_score(share, np.array([5.0, 1.0, 1.0, 1.0]), NO)
    np.testing.assert_allclose(score, [60, 90, 90, 90])


def test_nodes_running_out_of_memory_are_passed_over_and_deal_no_points() -> None:
    share = np.array([0.1, 0.2, 0.3, 0.4])
    score = predicted_peak_score(share, np.array([1.0, 3.0, 2.0, NAN]), np.array([True, False, False, False]))
    np.testing.assert_allclose(score, [0, 70, 80, 60])


def test_when_all_known_nodes_run_out_of_memory_they_are_scored_as_ever() -> None:
    share = np.array([0.1, 0.2, NAN, 0.4])
    score = predicted_peak_score(share, NONE, np.array([True, True, False, True]))
    np.testing.assert_allclose(score, [90, 80, 80, 60])


def test_unknown_nodes_get_the_median_of_the_known() -> None:
    score = predicted_peak_score(np.array([0.1, NAN, 0.5, 0.2]), np.array([2.0, 0.0, NAN, 1.0]), NO)
    np.testing.assert_allclose(score, [80, 80, 50, 90])
    assert predicted_peak_score(NONE, NONE, NO).tolist() == [50, 50, 50, 50]
