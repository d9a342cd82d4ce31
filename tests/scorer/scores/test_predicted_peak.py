"""The exact objective agrees with its definition, slot by slot, on nodes of unequal size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast.arrays import Floats
from scorer.scores.predicted_peak import PredictedLoad

CAPACITY = np.outer([1.0, 2.0, 4.0], [8.0, 100.0])
WEIGHTS = np.array([1.0, 0.5])


def objective(load: Floats, point_weights: Floats) -> float:
    """sum of w C / mean C * x^4, x = load / C, one number at a time."""
    total = 0.0
    for node in range(3):
        for r in range(2):
            for point, weight in enumerate(point_weights):
                share = load[node, r, point] / CAPACITY[node, r]
                total += WEIGHTS[r] * weight * CAPACITY[node, r] / CAPACITY[:, r].mean() * share**4
    return total


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_growth_agrees_with_the_slow_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    usage, point_weights = rng.gamma(1.0, 1.0, (3, 2, 7)), rng.uniform(0.1, 1.0, 7)
    base = rng.uniform(0, 2, (3, 2, 7))
    predicted = PredictedLoad(usage, point_weights, base, CAPACITY, WEIGHTS)
    load = base.copy()
    for _ in range(6):
        service, node = int(rng.integers(3)), int(rng.integers(3))
        predicted.add(service, node)
        load[node] += usage[service]
    predicted.add(0, 1)
    predicted.add(0, 1, -1)
    new_base = rng.uniform(0, 2, base.shape)
    predicted.set_base(new_base)
    load += new_base - base
    point_weights[:3] = 0.0
    predicted.set_weights(point_weights)
    growth = predicted.growth(2, np.array([2, 0, 1]))
    for position, node in enumerate((2, 0, 1)):
        after = load.copy()
        after[node] += usage[2]
        assert growth[position] == pytest.approx(
            objective(after, point_weights) - objective(load, point_weights), rel=1e-4
        )


def test_peak_with_is_never_below_the_true_peak() -> None:
    rng = np.random.default_rng(1)
    usage = rng.random((2, 2, 9))
    predicted = PredictedLoad(usage, np.ones(9), np.zeros((3, 2, 9)), CAPACITY, WEIGHTS)
    predicted.add(0, 1)
    true_peak = ((usage[0] + usage[1]).max(axis=1) / CAPACITY[1])[0]
    assert predicted.peak_with(1, 0)[1] >= true_peak
    assert predicted.peak_with(1, 0)[0] == pytest.approx(usage[1, 0].max() / CAPACITY[0, 0])


def test_a_resource_without_capacity_costs_nothing() -> None:
    capacity = np.array([[np.nan, 10.0], [5.0, 10.0]])
    usage = np.zeros((1, 2, 3))
    usage[0, 0] = 4.0
    predicted = PredictedLoad(usage, np.ones(3), np.zeros((2, 2, 3)), capacity, np.ones(2))
    growth = predicted.growth(0, np.array([0, 1]))
    assert growth[0] == 0
    assert growth[1] > 0


def test_the_higher_peak_is_the_dearer_one_even_at_the_same_mean() -> None:
    usage = np.array([[[2.0, 0.0]], [[0.0, 2.0]], [[1.0, 1.0]]])
    capacity = np.full((2, 1), 10.0)
    predicted = PredictedLoad(usage, np.ones(2), np.zeros((2, 1, 2)), capacity, np.ones(1))
    predicted.add(0, 0)
    predicted.add(0, 0)
    predicted.add(2, 1)
    predicted.add(2, 1)
    nodes = np.array([0, 1])
    assert predicted.growth(0, nodes).argmin() == 1
    assert predicted.growth(1, nodes).argmin() == 0
