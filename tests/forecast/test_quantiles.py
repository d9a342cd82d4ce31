from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from base.arrays import Floats
from forecast.quantiles import nan_quantile, sort_rows


@given(arrays(np.float64, (4, 9), elements=st.floats(0, 100) | st.just(np.nan)), st.floats(0, 1))
def test_nan_quantile_is_numpys(values: Floats, quantile: float) -> None:
    values[:, 0] = 1.0  # numpy warns about empty rows
    np.testing.assert_allclose(nan_quantile(values, quantile), np.nanquantile(values, quantile, axis=1), atol=1e-9)


def test_nan_quantile_of_nothing_is_nan() -> None:
    assert np.isnan(nan_quantile(np.full((2, 3), np.nan), 0.5)).all()
    assert np.isnan(nan_quantile(np.zeros((2, 0)), 0.5)).all()


def test_days_without_weight_or_value_do_not_count() -> None:
    values = np.array([[5.0, np.nan, 1.0, 3.0, 2.0, 100.0]])
    weights = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    result = sort_rows(values).quantiles(weights, (0.0, 0.5, 1.0))
    np.testing.assert_allclose(result, [[1.0, 2.5, 5.0]])


def test_weight_moves_a_quantile_and_an_empty_row_is_zero() -> None:
    values = np.array([[1.0, 10.0], [np.nan, np.nan]])
    heavy = sort_rows(values).quantiles(np.array([0.1, 0.9]), (0.5,))
    assert heavy[0, 0] > 5.5
    assert heavy[1, 0] == 0.0


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.95])
def test_quantiles_are_the_slow_loop(quantile: float) -> None:
    rng = np.random.default_rng(1)
    values, weights = rng.gamma(1.0, size=(20, 15)), rng.uniform(size=15)
    values[rng.uniform(size=values.shape) < 0.2] = np.nan
    fast = sort_rows(values).quantiles(weights, (quantile,))[:, 0]
    for row, got in zip(values, fast, strict=True):
        order = [k for k in np.argsort(row) if np.isfinite(row[k])]
        mass = weights[order]
        position = (np.cumsum(mass) - mass / 2) / mass.sum()
        assert got == pytest.approx(np.interp(quantile, position, row[order]))
