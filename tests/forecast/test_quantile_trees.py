"""The quicker quantile of leaves: the same values, and the same trees as scikit-learn's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingRegressor

from base.arrays import Floats
from forecast.peak_trees import QuantileTrees, weighted_quantile

PAIRS = st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 9)), min_size=1, max_size=30)


@given(PAIRS, st.sampled_from([0.0, 0.25, 0.5, 0.7, 0.95, 1.0]))
def test_it_is_the_lowest_value_that_has_its_share_of_the_weights(
    pairs: list[tuple[int, int]], quantile: float
) -> None:
    values, weights = np.array(pairs, dtype=np.float64).T
    found = weighted_quantile(values, weights, quantile)
    assert found in values
    total = weights.sum()
    assert weights[values <= found].sum() >= quantile * total - 1e-9
    assert weights[values < found].sum() <= quantile * total + 1e-9


@pytest.mark.parametrize("quantile", [0.5, 0.9575])
@pytest.mark.parametrize("weighted", [True, False])
def test_trees_are_those_of_scikit_learn(quantile: float, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    features = rng.integers(0, 20, (600, 5)).astype(np.float64)
    target = features[:, 0] * rng.random(600) + rng.normal(size=600)
    weights = rng.uniform(0.005, 3.0, 600) if weighted else None

    def learned(kind: type[HistGradientBoostingRegressor]) -> Floats:
        made = kind(loss="quantile", quantile=quantile, max_iter=40, max_leaf_nodes=8, random_state=1)
        return np.asarray(made.fit(features, target, sample_weight=weights).predict(features))

    np.testing.assert_array_equal(learned(QuantileTrees), learned(HistGradientBoostingRegressor))
