"""kube-scheduler's scores, against figures worked out by hand from its formulas (integers truncate)."""

from __future__ import annotations

import numpy as np
import pytest

from scorer.scores.balanced_allocation import balanced_allocation_score
from scorer.scores.least_allocated import UNREQUESTED, least_allocated_score, nonzero_requests

GIB = 1024.0**3


@pytest.mark.parametrize(
    ("requested", "pod", "allocatable", "score"),
    [
        # cpu (4 - 1) * 100 / 4 = 75, memory (8 - 2) * 100 / 8 = 75
        ((0.0, 0.0), (1.0, 2 * GIB), (4.0, 8 * GIB), 75),
        # cpu 1000 * 100 / 3000 = 33, memory 50: (33 + 50) / 2 = 41
        ((1.0, 2 * GIB), (1.0, 2 * GIB), (3.0, 8 * GIB), 41),
        # more CPU wanted than there is: 0; memory 50: 25
        ((2.0, 2 * GIB), (1.0, 2 * GIB), (2.5, 8 * GIB), 25),
        # no CPU at all on the node: memory alone
        ((0.0, 2 * GIB), (1.0, 2 * GIB), (0.0, 8 * GIB), 50),
        # exactly full
        ((3.0, 6 * GIB), (1.0, 2 * GIB), (4.0, 8 * GIB), 0),
    ],
)
def test_least_allocated(requested, pod, allocatable, score) -> None:  # type: ignore[no-untyped-def]
    result = least_allocated_score(np.array([requested]), np.array(pod), np.array([allocatable]))
    assert result.tolist() == [score]


@pytest.mark.parametrize(
    ("requested", "pod", "allocatable", "score"),
    [
        # without: both 0, b = 100; with: 0.5 and 0.5, b = 100: 50 + (50 + 0) / 2
        ((0.0, 0.0), (2.0, 4 * GIB), (4.0, 8 * GIB), 75),
        # with: 0.5 and 0, s = 0.25, b = 75: 50 + (50 - 25) / 2 = 62
        ((0.0, 0.0), (2.0, 0.0), (4.0, 8 * GIB), 62),
        # without: 0.5 and 0, b = 75; with: 0.5 and 0.5, b = 100: 50 + 75 / 2 = 87
        ((2.0, 0.0), (0.0, 4 * GIB), (4.0, 8 * GIB), 87),
        # shares are capped at 1, so an overfull node is balanced
        ((4.0, 8 * GIB), (1.0, 2 * GIB), (4.0, 8 * GIB), 75),
    ],
)
def test_balanced_allocation_scores_the_change(requested, pod, allocatable, score) -> None:  # type: ignore[no-untyped-def]
    result = balanced_allocation_score(np.array([requested]), np.array(pod), np.array([allocatable]))
    assert result.tolist() == [score]


def test_a_pod_without_requests_is_not_scored_for_balance() -> None:
    assert balanced_allocation_score(np.ones((2, 2)), np.zeros(2), np.full((2, 2), 4.0)).tolist() == [0, 0]


def test_pods_without_requests_count_at_the_default() -> None:
    np.testing.assert_array_equal(nonzero_requests(np.array([np.nan, 0.0])), UNREQUESTED)
    np.testing.assert_array_equal(nonzero_requests(np.array([2.0, GIB])), [2.0, GIB])
