"""kube-scheduler's scores, against figures worked out by hand from its formulas (integers truncate)."""

from __future__ import annotations

import numpy as np

from scorer.scores.balanced_allocation import balanced_allocation_score
from scorer.scores.least_allocated import UNREQUESTED, nonzero_requests

GIB = 1024.0**3


def test_a_pod_without_requests_is_not_scored_for_balance() -> None:
    assert balanced_allocation_score(np.ones((2, 2)), np.zeros(2), np.full((2, 2), 4.0)).tolist() == [0, 0]


def test_pods_without_requests_count_at_the_default() -> None:
    np.testing.assert_array_equal(nonzero_requests(np.array([np.nan, 0.0])), UNREQUESTED)
    np.testing.assert_array_equal(nonzero_requests(np.array([2.0, GIB])), [2.0, GIB])
