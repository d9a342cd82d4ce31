"""CRPS and MASE are those of their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.decision_accuracy import absolute_error, crps, over_naive
from benchmarks.decision_forecasters import QUANTILES


def test_crps_of_a_normal_distribution_is_near_its_closed_form() -> None:
    """CRPS of N(0, 1) at y is y (2 cdf(y) - 1) + 2 pdf(y) - 1 / sqrt(pi); nine quantiles leave out the tails."""
    actual = np.random.default_rng(0).normal(size=(1, 4_000))
    levels = tuple(float(q) for q in np.linspace(0.005, 0.895, 90))
    curves = np.broadcast_to(norm.ppf(levels), (1, 4_000, 90))
    exact = actual * (2 * norm.cdf(actual) - 1) + 2 * norm.pdf(actual) - 1 / np.sqrt(np.pi)
    ours = crps(actual, np.asarray(curves), levels) / 4_000
    assert ours[0] == pytest.approx(exact.mean(), rel=0.1)


def test_crps_of_a_point_forecast_is_its_absolute_error() -> None:
    actual, point = np.array([[1.0, 5.0, np.nan]]), np.array([[2.0, 2.0, 2.0]])
    curves = np.repeat(point[..., None], len(QUANTILES), axis=-1)
    assert crps(actual, curves, QUANTILES) == pytest.approx(absolute_error(actual, point))
    assert absolute_error(actual, point) == pytest.approx([4.0])


def test_ratios_to_the_naive_are_averaged_geometrically_and_series_that_never_change_left_out() -> None:
    assert over_naive(np.array([1.0, 4.0, 7.0]), np.array([2.0, 2.0, 0.0])) == pytest.approx(1.0, rel=1e-4)


def test_there_is_no_ratio_where_the_naive_is_never_wrong() -> None:
    assert np.isnan(over_naive(np.ones(2), np.zeros(2)))
