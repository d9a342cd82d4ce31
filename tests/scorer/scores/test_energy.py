"""The growth of energy is the difference of two energies, on nodes of unequal size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base.arrays import Floats
from scorer.scores.energy import best_nodes, energy_growth

N_NODES, N_RESOURCES, N_POINTS = 6, 3, 20
WEIGHTS = np.array([1.0, 0.25, 2.0])
CAPACITY = np.outer([1.0, 2.0, 4.0, 1.0, 2.0, 4.0], [8.0, 100.0, 50.0])
CAPACITY[2, 1] = np.nan


def energy(load: Floats, point_weights: Floats) -> float:
    """Definition, slot by slot: sum of w C x^2 / mean C, x = load / C."""
    total = 0.0
    mean_capacity = np.nanmean(CAPACITY, axis=0)
    for node in range(N_NODES):
        for r in range(N_RESOURCES):
            c = CAPACITY[node, r]
            if not np.isfinite(c):
                continue
            for point in range(N_POINTS):
                total += WEIGHTS[r] * c / mean_capacity[r] * point_weights[point] * (load[node, r, point] / c) ** 2
    return total


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_growth_is_the_difference_of_two_energies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    load, usage = rng.uniform(0, 5, (N_NODES, N_RESOURCES, N_POINTS)), rng.gamma(1.0, 1.0, (N_RESOURCES, N_POINTS))
    point_weights = rng.uniform(0.2, 1.0, N_POINTS)
    growth = energy_growth(load, usage, point_weights, CAPACITY, WEIGHTS)
    before = energy(load, point_weights)
    for node in range(N_NODES):
        after = load.copy()
        after[node] += usage
        assert growth[node] == pytest.approx(energy(after, point_weights) - before)


def test_best_nodes_are_the_cheapest_feasible_ones() -> None:
    cost = np.array([5.0, 1.0, 3.0, 2.0, 4.0])
    feasible = np.array([True, False, True, True, True])
    assert set(best_nodes(cost, feasible, 2)) == {2, 3}
    assert set(best_nodes(cost, feasible, 9)) == {0, 2, 3, 4}
