from __future__ import annotations

import numpy as np
import pytest

from forecast.quantiles import coverage, pinball_loss


@pytest.mark.parametrize(
    ("actual", "forecast", "quantile", "loss"),
    [(1.0, 0.0, 0.95, 0.95), (0.0, 1.0, 0.95, 0.05), (3.0, 1.0, 0.5, 1.0), (1.0, 3.0, 0.5, 1.0), (2.0, 2.0, 0.9, 0.0)],
)
def test_pinball_loss_has_no_factor_two(actual: float, forecast: float, quantile: float, loss: float) -> None:
    assert pinball_loss(np.array([actual]), np.array([forecast]), quantile)[0] == pytest.approx(loss)


def test_coverage_counts_known_pairs_only_and_equality_as_covered() -> None:
    actual = np.array([1.0, 2.0, 3.0, np.nan])
    assert coverage(actual, np.array([1.0, 1.0, 5.0, 5.0])) == pytest.approx(2 / 3)
    assert np.isnan(coverage(np.array([np.nan]), np.array([1.0])))
