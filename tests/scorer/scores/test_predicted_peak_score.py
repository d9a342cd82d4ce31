from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scorer.scores.predicted_peak_score import points_of_share, predicted_peak_score

NAN = np.nan


@pytest.mark.parametrize(
    ("share", "points"), [(0.0, 100), (0.25, 75), (0.9, 10), (1.0, 10 / np.e), (1.9, 10 * np.exp(-10)), (-0.1, 100)]
)
def test_points_of_share(share: float, points: float) -> None:
    assert points_of_share(np.array([share]))[0] == pytest.approx(points)


@given(st.floats(0, 5), st.floats(1e-6, 1))
def test_a_fuller_node_always_scores_less(share: float, more: float) -> None:
    less, full = points_of_share(np.array([share + more, share]))
    assert less < full


NO = (False, False, False, False)
NONE = (NAN, NAN, NAN, NAN)


@pytest.mark.parametrize(
    ("share", "exact", "out_of_memory", "score"),
    [
        pytest.param((0.1, 0.5, 0.3, 0.2), NONE, NO, [90, 50, 70, 80], id="without a short list points alone"),
        pytest.param((0.1, 0.2, 0.3, 0.25), (3.0, 1.0, 2.0, NAN), NO, [70, 90, 80, 75], id="ordered by exact cost"),
        pytest.param((0.1, 0.2, 0.3, 0.4), (5.0, 1.0, 1.0, 1.0), NO, [60, 90, 90, 90], id="equal costs, the best"),
        pytest.param(
            (0.1, 0.2, 0.3, 0.4), (1.0, 3.0, 2.0, NAN), (True, False, False, False), [0, 70, 80, 60], id="no memory"
        ),
        pytest.param((0.1, 0.2, NAN, 0.4), NONE, (True, True, False, True), [90, 80, 80, 60], id="no memory anywhere"),
        pytest.param((0.1, NAN, 0.5, 0.2), (2.0, 0.0, NAN, 1.0), NO, [80, 80, 50, 90], id="unknown: the median"),
        pytest.param(NONE, NONE, NO, [50, 50, 50, 50], id="all unknown"),
    ],
)
def test_the_score(
    share: tuple[float, ...], exact: tuple[float, ...], out_of_memory: tuple[bool, ...], score: list[float]
) -> None:
    found = predicted_peak_score(np.array(share), np.array(exact), np.array(out_of_memory))
    np.testing.assert_allclose(found, score)
