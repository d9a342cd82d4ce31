"""The regression of levels solves what it says, and its replicates do not depend on order."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from forecast.peak_weights.level_regression import LevelRegression, block_structure, build, node_draws
from forecast.peak_weights.observations import observe
from forecast.resources import CPU
from testing.clusters.constructed import constructed


def test_conjugate_gradients_reach_the_ridge_solution_of_every_replicate() -> None:
    rng = np.random.default_rng(0)
    z = rng.random((60, 7)) * (rng.random((60, 7)) < 0.5)
    y, weight, node = rng.random(60), rng.random(60), np.arange(60) % 6
    counts = rng.integers(0, 3, (6, 4)).astype(np.float32)
    prior, ridge = rng.random((7, 4)), rng.random(7) + 0.1
    regression = LevelRegression(
        z=sp.csr_matrix(z.astype(np.float32)),
        y=y.astype(np.float32),
        weight=weight.astype(np.float32),
        node=node,
        mass=np.zeros((0, 12), dtype=np.float32),
        n_bases=7,
        n_costs=0,
        unit=1.0,
    )
    ours = regression.solve(ridge.astype(np.float32), prior.astype(np.float32), counts)
    for b in range(4):
        rows = weight * counts[node, b]
        exact = np.linalg.solve((z.T * rows) @ z + np.diag(ridge), z.T @ (rows * y) + ridge * prior[:, b])
        np.testing.assert_allclose(ours[:, b], exact, rtol=2e-3, atol=2e-3)


def test_rows_hold_the_mean_load_of_four_hours_on_a_node() -> None:
    history, _ = constructed(n_services=12, n_nodes=6, n_days=3)
    seen = observe(history)
    curves = np.nan_to_num(history.usage_per_pod[:, CPU])
    measured = np.ones(12, dtype=np.bool_)
    regression = build(seen, block_structure(seen), curves, CPU, measured, with_cost=False)
    load = (regression.z[:, :12] @ np.ones(12)).reshape(3 * 6, 6).T * regression.unit  # (n_nodes, n_blocks)
    expected = np.nan_to_num(history.node_pod_usage[:, CPU]).reshape(6, 18, 8).mean(axis=2)
    np.testing.assert_allclose(load, expected, rtol=0.1)  # pods differ by 2 % from their service's curve
    assert np.corrcoef(load.ravel(), expected.ravel())[0, 1] > 0.999


def test_draws_of_nodes_follow_their_names_and_not_their_order() -> None:
    names = tuple(f"node-{i}" for i in range(9))
    order = np.random.default_rng(3).permutation(9)
    one = node_draws(names, 8, np.random.default_rng(1))
    two = node_draws(tuple(names[i] for i in order), 8, np.random.default_rng(1))
    np.testing.assert_array_equal(two, one[order])
    assert (one[:, 0] == 1).all() and (one.sum(axis=0) == 9).all() and one.max() > 1


@pytest.mark.parametrize("hole", [3, 5])
def test_a_block_counts_where_half_of_it_was_measured(hole: int) -> None:
    history, _ = constructed(n_services=12, n_nodes=6, n_days=3)
    history.node_usage[2, CPU, 1, 8 : 8 + hole] = np.nan
    seen = observe(history)
    measured = np.ones(12, dtype=np.bool_)
    nothing = np.zeros((12, 3, 48))
    weight = build(seen, block_structure(seen), nothing, CPU, measured, with_cost=True).weight.reshape(18, 6)
    assert (weight[7, 2] > 0) == (hole <= 4) and (np.delete(weight.ravel(), 7 * 6 + 2) > 0).all()
