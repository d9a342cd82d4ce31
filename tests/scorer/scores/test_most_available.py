from __future__ import annotations

import numpy as np
import pytest

from scorer.scores.most_available import available_is_known, most_available_score

NAN = np.nan
TAIL = 10 * np.exp(-(1.75 - 0.9) / 0.1)


@pytest.mark.parametrize(
    ("available", "pod", "capacity", "score"),
    [
        ((4.0, 8.0), (0.0, 0.0), (4.0, 8.0), 100.0),
        # (4 - 1) / 4 = 0.75 and (6 - 2) / 8 = 0.5 is scarcer; the mean has weights 3 and 1
        ((4.0, 6.0), (1.0, 2.0), (4.0, 8.0), 0.95 * 50 + 0.05 * (3 * 75 + 50) / 4),
        # share 1.75 of the first: on the tail of points_of_share
        ((-2.0, 8.0), (1.0, 0.0), (4.0, 8.0), 0.95 * TAIL + 0.05 * (3 * TAIL + 100) / 4),
        # what is freed again above capacity counts as all of it
        ((5.0, 9.0), (0.0, 0.0), (4.0, 8.0), 100.0),
        # no limit, or not measured: left out
        ((2.0, 6.0), (0.0, 2.0), (NAN, 8.0), 50.0),
        ((2.0, 6.0), (0.0, 2.0), (0.0, 8.0), 50.0),
        ((NAN, 6.0), (0.0, 2.0), (4.0, 8.0), 50.0),
        # nothing known of the pod
        ((2.0, 4.0), (NAN, NAN), (4.0, 8.0), 50.0),
        ((NAN, NAN), (1.0, 2.0), (4.0, 8.0), 50.0),
    ],
)
def test_score(available, pod, capacity, score) -> None:  # type: ignore[no-untyped-def]
    result = most_available_score(np.array([available]), np.array(pod), np.array([capacity]), np.array([3.0, 1.0]))
    assert result[0] == pytest.approx(score)


def test_a_node_is_known_by_any_resource_that_counts_and_idle_disks_are_no_cores() -> None:
    """Of five resources CPU alone is short: 100 cores over a capacity of 32, or 60 % of it free."""
    capacity = np.array([[32.0, 128.0, 1000.0, 1000.0, 10.0]] * 3)
    available = np.array(
        [[-100.0, 128.0, 1000.0, 1000.0, 10.0], [19.2, 64.0, 500.0, 500.0, 5.0], [-1.0, 64.0, 500.0, 500.0, 5.0]]
    )
    over, free, slightly_over = most_available_score(available, np.zeros(5), capacity, np.array([1, 0.25, 1, 1, 1]))
    assert free > 45 > 10 > over
    assert slightly_over < 10
    available = np.array([[1.0, NAN], [NAN, 1.0], [NAN, NAN], [1.0, 1.0]])
    capacity = np.array([[4.0, 8.0], [4.0, 8.0], [4.0, 8.0], [NAN, 0.0]])
    assert available_is_known(available, capacity, np.ones(2)).tolist() == [True, True, False, False]
    assert available_is_known(available, capacity, np.array([1.0, 0.0])).tolist() == [True, False, False, False]
