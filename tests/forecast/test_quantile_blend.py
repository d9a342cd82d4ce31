from __future__ import annotations

import numpy as np
import pytest

from forecast.expert_weights import blend_weights
from forecast.quantiles import pinball_loss


def test_the_expert_that_is_right_gets_the_weight() -> None:
    rng = np.random.default_rng(0)
    actual = rng.gamma(3.0, size=4000) / 3
    forecasts = np.stack([actual * 1.02, rng.permutation(actual), np.full(4000, 2.0)], axis=1)
    weights = blend_weights(forecasts, actual, 0.5, np.full(3, 1 / 3))
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] > 0.9


@pytest.mark.parametrize("quantile", [0.5, 0.95])
def test_the_blend_is_no_worse_than_its_parts(quantile: float) -> None:
    rng = np.random.default_rng(1)
    actual = rng.gamma(3.0, size=3000) / 3
    forecasts = np.stack([np.full(3000, level) for level in (0.3, 0.8, 1.6, 3.0)], axis=1)
    weights = blend_weights(forecasts, actual, quantile, np.full(4, 0.25))
    blended = pinball_loss(actual, forecasts @ weights, quantile).mean()
    assert blended <= min(pinball_loss(actual, forecasts[:, k], quantile).mean() for k in range(4)) + 1e-6


def test_without_rows_the_prior_stays_and_with_few_it_pulls() -> None:
    prior = np.array([0.8, 0.2])
    np.testing.assert_array_equal(blend_weights(np.zeros((0, 2)), np.zeros(0), 0.5, prior), prior)
    actual = np.ones(2000)
    forecasts = np.stack([np.full(2000, 1.2), actual], axis=1)
    few = blend_weights(forecasts[:5], actual[:5], 0.5, prior)
    many = blend_weights(forecasts, actual, 0.5, prior)
    assert few[0] > many[0]
