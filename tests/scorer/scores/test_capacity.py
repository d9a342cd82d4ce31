"""A node of unknown size is neither the best nor the worst: nobody knows."""

from __future__ import annotations

import warnings

import numpy as np

from scorer.scores.least_allocated import least_allocated_score


def test_least_allocated_leaves_out_what_is_not_known() -> None:
    unknown = np.array([[4.0, np.inf], [4.0, np.nan], [4.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = least_allocated_score(np.zeros((3, 2)), np.array([1.0, 1e9]), unknown)
    assert score.tolist() == [75, 75, 75]
