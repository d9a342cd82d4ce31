"""The table of energies agrees with the loop over slots, whatever comes and goes, on nodes of unequal size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast.arrays import Floats
from scorer.scores.energy import EnergyTable, ServiceCurves, best_nodes, energy_growth

N_SERVICES, N_NODES, N_RESOURCES, N_POINTS = 4, 6, 3, 20
WEIGHTS = np.array([1.0, 0.25, 2.0])
CAPACITY = np.outer([1.0, 2.0, 4.0, 1.0, 2.0, 4.0], [8.0, 100.0, 50.0])


def random_curves(rng: np.random.Generator) -> ServiceCurves:
    return ServiceCurves(
        usage=rng.gamma(1.0, 1.0, (N_SERVICES, N_RESOURCES, N_POINTS)),
        weights=rng.uniform(0.2, 1.0, N_POINTS),
        own_variance=rng.gamma(1.0, 1.0, (N_SERVICES, N_RESOURCES)),
        shared_variance=rng.gamma(1.0, 1.0, (N_SERVICES, N_RESOURCES)),
    )


def expected_energy(counts: Floats, curves: ServiceCurves, base: Floats, capacity: Floats) -> float:
    """Definition of the energy itself, slot by slot: sum of w C E[x^2] / mean C, x = load / C."""
    total = 0.0
    mean_capacity = np.nanmean(capacity, axis=0)
    for node in range(len(counts)):
        for r in range(N_RESOURCES):
            c = capacity[node, r]
            if not np.isfinite(c):
                continue
            energy = 0.0
            for point in range(N_POINTS):
                load = base[node, r, point] + sum(
                    counts[node, s] * curves.usage[s, r, point] for s in range(N_SERVICES)
                )
                energy += curves.weights[point] * load**2
            for s in range(N_SERVICES):
                n = counts[node, s]
                energy += n * curves.own_variance[s, r] + n**2 * curves.shared_variance[s, r]
            total += WEIGHTS[r] * c / mean_capacity[r] * energy / c**2
    return float(total)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_growth_is_the_difference_of_two_energies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    curves, base = random_curves(rng), rng.uniform(0, 1, (N_NODES, N_RESOURCES, N_POINTS))
    counts = rng.integers(0, 3, (N_NODES, N_SERVICES)).astype(float)
    growth = energy_growth(counts, 1, curves, base, CAPACITY, WEIGHTS)
    before = expected_energy(counts, curves, base, CAPACITY)
    for node in range(N_NODES):
        after = counts.copy()
        after[node, 1] += 1
        assert growth[node] == pytest.approx(expected_energy(after, curves, base, CAPACITY) - before)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_table_agrees_with_the_definition_while_pods_come_and_go(seed: int) -> None:
    rng = np.random.default_rng(seed)
    curves, base = random_curves(rng), rng.uniform(0, 1, (N_NODES, N_RESOURCES, N_POINTS))
    capacity = CAPACITY.copy()
    capacity[2, 1] = np.nan
    table = EnergyTable(curves, base, capacity, WEIGHTS)
    counts = np.zeros((N_NODES, N_SERVICES))
    for _ in range(25):
        service, node = int(rng.integers(N_SERVICES)), int(rng.integers(N_NODES))
        change = -1 if counts[node, service] > 0 and rng.random() < 0.3 else 1
        counts[node, service] += change
        table.add(service, node, change)
        if rng.random() < 0.2:
            base = rng.uniform(0, 1, base.shape)
            table.set_base(base)
        if rng.random() < 0.2:
            curves = replace(curves, weights=curves.weights * (rng.random(N_POINTS) < 0.8))
            table.set_weights(curves.weights)
        # Asking late makes a column late: it has to catch up with what is there.
        asked = int(rng.integers(N_SERVICES))
        expected = energy_growth(counts, asked, curves, base, capacity, WEIGHTS)
        np.testing.assert_allclose(table.growth(asked), expected, rtol=1e-9, atol=1e-9)


def test_more_services_than_the_first_allocation_get_columns() -> None:
    n_services = 20
    rng = np.random.default_rng(0)
    none = np.zeros((n_services, 1))
    curves = ServiceCurves(rng.random((n_services, 1, 5)), np.ones(5), none, none)
    table = EnergyTable(curves, np.zeros((2, 1, 5)), np.ones((2, 1)), np.ones(1))
    for service in range(n_services):
        table.growth(service)
        table.add(service, 0)
    expected = energy_growth(table.counts, 3, curves, np.zeros((2, 1, 5)), np.ones((2, 1)), np.ones(1))
    np.testing.assert_allclose(table.growth(3), expected)


def test_equal_pods_fill_nodes_of_ratio_1_2_4_to_equal_shares() -> None:
    # Minimising the sum of (X / C)^2 instead would give 1 : 4 : 16.
    capacity = np.array([[10.0], [20.0], [40.0]])
    none = np.zeros((1, 1))
    curves = ServiceCurves(np.ones((1, 1, 4)), np.ones(4), none, none)
    table = EnergyTable(curves, np.zeros((3, 1, 4)), capacity, np.ones(1))
    for _ in range(35):
        table.add(0, int(table.growth(0).argmin()))
    np.testing.assert_array_equal(table.counts[:, 0], [5, 10, 20])


def test_a_pod_avoids_the_node_whose_peak_it_would_meet() -> None:
    morning, evening = np.array([3.0, 0.0]), np.array([0.0, 3.0])
    none = np.zeros((2, 1))
    curves = ServiceCurves(np.stack([morning, evening])[:, None], np.ones(2), none, none)
    table = EnergyTable(curves, np.zeros((2, 1, 2)), np.full((2, 1), 10.0), np.ones(1))
    table.add(0, 0)
    table.add(1, 1)
    assert table.growth(1).argmin() == 0
    assert table.growth(0).argmin() == 1


def test_replicas_that_err_together_are_spread() -> None:
    one = np.ones((2, 1, 3))
    curves = ServiceCurves(one, np.ones(3), np.zeros((2, 1)), np.full((2, 1), 0.5))
    table = EnergyTable(curves, np.zeros((2, 1, 3)), np.full((2, 1), 10.0), np.ones(1))
    table.add(0, 0)
    table.add(1, 1)
    assert table.growth(0).argmin() == 1
    assert table.growth(1).argmin() == 0


def test_best_nodes_are_the_cheapest_feasible_ones() -> None:
    cost = np.array([5.0, 1.0, 3.0, 2.0, 4.0])
    feasible = np.array([True, False, True, True, True])
    assert set(best_nodes(cost, feasible, 2)) == {2, 3}
    assert set(best_nodes(cost, feasible, 9)) == {0, 2, 3, 4}
