"""The table of predicted load agrees with the definitions, whatever comes and goes, on nodes of unequal size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base.arrays import AnyFloats, Floats
from cluster.predicted.load import PredictedLoad
from scorer.scores.energy import energy_growth

N_PROFILES, N_NODES, N_RESOURCES, N_POINTS = 4, 6, 3, 20
WEIGHTS = np.array([1.0, 0.25, 2.0])
CAPACITY = np.outer([1.0, 2.0, 4.0, 1.0, 2.0, 4.0], [8.0, 100.0, 50.0])


OTHER_WEIGHTS = [(1.0, 0.0, 0.0), (0.0, 3.0, 0.5)]


def predicted_load(
    usage: AnyFloats, point_weights: AnyFloats, base: AnyFloats, capacity: AnyFloats, resource_weights: AnyFloats
) -> PredictedLoad:
    """Profiles (n_profiles, n_resources, n_points) and nodes with base (n_nodes, n_resources, n_points)."""
    load = PredictedLoad(point_weights, resource_weights)
    for curve in usage:
        load.add_profile(curve)
    for node in range(len(capacity)):
        load.set_node(node, capacity[node], base[node])
    return load


def objective(
    load: Floats, point_weights: Floats, capacity: Floats, weights: Sequence[float] = tuple(WEIGHTS)
) -> float:
    """sum of w C / mean C * x^4, x = load / C, one number at a time."""
    total = 0.0
    mean = np.nanmean(capacity, axis=0)
    for node in range(len(load)):
        for r in range(N_RESOURCES):
            if not np.isfinite(capacity[node, r]):
                continue
            for point, weight in enumerate(point_weights):
                share = load[node, r, point] / capacity[node, r]
                total += weights[r] * weight * capacity[node, r] / mean[r] * share**4
    return total


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_whatever_comes_and_goes_the_table_agrees_with_the_definitions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    usage = rng.gamma(1.0, 1.0, (N_PROFILES, N_RESOURCES, N_POINTS))
    base: Floats = rng.uniform(0, 1, (N_NODES, N_RESOURCES, N_POINTS))
    point_weights: Floats = rng.uniform(0.2, 1.0, N_POINTS)
    capacity = CAPACITY.copy()
    capacity[2, 1] = np.nan
    error = np.zeros((N_NODES, N_RESOURCES))
    fading: Floats = np.zeros(N_POINTS)
    table = predicted_load(usage, point_weights, base, capacity, WEIGHTS)
    counts = np.zeros((N_NODES, N_PROFILES))
    for _ in range(30):
        event = rng.random()
        profile, node = int(rng.integers(N_PROFILES)), int(rng.integers(N_NODES))
        if event < 0.6:
            pods = -1 if counts[node, profile] > 0 and rng.random() < 0.4 else 1
            counts[node, profile] += pods
            table.add(profile, node, pods)
        elif event < 0.7:
            base = rng.uniform(0, 1, base.shape)
            table.set_base(base)
        elif event < 0.78:
            point_weights = point_weights * (rng.random(N_POINTS) < 0.8)
            table.set_weights(point_weights)
        elif event < 0.86:
            error, fading = rng.normal(0, 0.1, error.shape), np.power(0.9, np.arange(N_POINTS))
            table.set_live_error(error, fading)
        elif event < 0.93:
            usage[profile] = rng.gamma(1.0, 1.0, (N_RESOURCES, N_POINTS))
            table.set_profile(profile, usage[profile])
        else:
            error[node, np.isnan(capacity[node])] = 0.0  # without a limit nothing was known of it
            capacity[node] = CAPACITY[node] * rng.uniform(0.5, 2)
            base[node] = rng.uniform(0, 1, base[node].shape)
            table.set_node(node, capacity[node], base[node])
        # Asking late makes a column late: it has to catch up with what is there.
        asked = int(rng.integers(N_PROFILES))
        load = np.einsum("np,prt->nrt", counts, usage) + base + error[:, :, None] * fading
        expected = energy_growth(load, usage[asked], point_weights, capacity, WEIGHTS)
        np.testing.assert_allclose(table.growth(asked), expected, rtol=2e-4, atol=1e-4)
        others = OTHER_WEIGHTS[int(rng.integers(len(OTHER_WEIGHTS)))]
        expected = energy_growth(load, usage[asked], point_weights, capacity, np.array(others))
        np.testing.assert_allclose(table.growth(asked, weights=others), expected, rtol=2e-4, atol=1e-4)
        load = np.maximum(load, 0.0)  # an error that has not faded yet may be more than there will be
        few = rng.permutation(N_NODES)[:3]
        exact = []
        for candidate in few:
            after = load.copy()
            after[candidate] += usage[asked]
            exact.append(objective(after, point_weights, capacity) - objective(load, point_weights, capacity))
        np.testing.assert_allclose(table.power_growth(asked, few), exact, rtol=1e-3, atol=1e-3)
        after = load.copy()
        after[few[0]] += usage[asked]
        growth = objective(after, point_weights, capacity, others) - objective(load, point_weights, capacity, others)
        np.testing.assert_allclose(table.power_growth(asked, few, others)[0], growth, rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(table.pods_of([2, 0])[:N_NODES], counts[:, [2, 0]])
        counted = point_weights > 0
        peak = np.nan_to_num((load + usage[asked])[:, 0, counted].max(axis=1, initial=0.0) / capacity[:, 0])
        assert (table.peak_with(asked, 0) >= peak - 1e-5).all()


def test_shares_and_costs_are_of_capacity_or_of_the_median_where_there_is_none() -> None:
    usage, base = np.ones((1, 1, 4)), np.full((2, 1, 4), [[[30.0]], [[60.0]]])
    for unit in (1.0, 1e9):
        table = predicted_load(unit * usage, np.ones(4), unit * base, np.full((2, 1), 100.0 * unit), np.ones(1))
        np.testing.assert_allclose(table.mean_share(0), [0.305, 0.605], rtol=1e-5)
    base = np.full((2, 1, 4), [[[30.0]], [[60.0]]])
    table = predicted_load(np.zeros((1, 1, 4)), np.ones(4), base, np.full((2, 1), 100.0), np.ones(1))
    np.testing.assert_allclose(table.mean_share(0), [0.3, 0.6], rtol=1e-5)
    capacity = np.array([[10.0, 5.0], [np.nan, np.nan], [20.0, np.nan], [40.0, 5.0]])
    table = predicted_load(np.ones((1, 2, 3)), np.ones(3), np.zeros((4, 2, 3)), capacity, np.ones(2))
    for cost in (table.growth(0), table.power_growth(0, np.arange(4))):
        assert cost[1] == pytest.approx(np.median(cost[[0, 2, 3]]))
        assert cost[1] > 0
        # One unknown resource among known ones stays no limit.
        assert cost[2] < cost[3]


def test_more_profiles_than_are_kept_in_columns_stay_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.predicted.growth_columns._MOST_COLUMNS", 2)
    rng = np.random.default_rng(0)
    usage = rng.random((6, 1, 5))
    table = predicted_load(usage, np.ones(5), np.zeros((2, 1, 5)), np.ones((2, 1)), np.ones(1))
    load = np.zeros((2, 1, 5))
    for profile in (0, 1, 2, 3, 0, 4, 5, 1):
        expected = energy_growth(load, usage[profile], np.ones(5), np.ones((2, 1)), np.ones(1))
        np.testing.assert_allclose(table.growth(profile), expected, rtol=1e-5)
        table.add(profile, 0)
        load[0] += usage[profile]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_many_pods_at_once_are_one_by_one_to_the_last_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    usage = rng.gamma(1.0, 1.0, (N_PROFILES, N_RESOURCES, N_POINTS))
    base = rng.uniform(0, 1, (N_NODES, N_RESOURCES, N_POINTS))
    tables = [predicted_load(usage, np.ones(N_POINTS), base, CAPACITY, WEIGHTS) for _ in range(2)]
    together, alone = tables
    nodes = rng.integers(N_NODES, size=int(rng.integers(0, 30))).tolist()
    for table in tables:
        table.set_live_error(rng.normal(0, 0.1, (N_NODES, N_RESOURCES)) * 0 + 0.05, 0.9 ** np.arange(N_POINTS))
        table.growth(0)  # a column that is mended, not made
    ahead = together.ahead(1)
    costs = {}
    for node in nodes:
        ahead.land(node)
        costs[node] = float(ahead.power_growth([node, 0])[0])
        alone.add(1, node)
        # Whoever reckons ahead gets what the tables have by then.
        assert costs[node] == alone.power_growth(1, np.array([node]))[0]
        assert ahead.highest(node, 0) == alone.highest(0, np.array([node]))[0]
        alone.growth(0)
    together.add_many(1, nodes)
    np.testing.assert_array_equal(together.share(slice(0, N_NODES)), alone.share(slice(0, N_NODES)))
    for profile in range(N_PROFILES):
        assert together.pods_on(profile) == alone.pods_on(profile)
    np.testing.assert_array_equal(together.growth(0), alone.growth(0))
    np.testing.assert_array_equal(together.peak_with(2, 1), alone.peak_with(2, 1))


def test_a_column_knows_what_another_pod_of_its_own_adds() -> None:
    rng = np.random.default_rng(5)
    usage = rng.gamma(1.0, 1.0, (N_PROFILES, N_RESOURCES, N_POINTS))
    table = predicted_load(usage, np.ones(N_POINTS), np.zeros((N_NODES, N_RESOURCES, N_POINTS)), CAPACITY, WEIGHTS)
    column = table.column(0)
    expected = column.dot.copy()
    own = table.own_growth(column, 0)
    for node in (3, 3, 1):
        expected[node] += own[node]
        table.add(0, node)
    np.testing.assert_array_equal(table.column(0).dot, expected)


def test_columns_from_one_reading_are_those_of_a_reading_each_to_the_last_bit() -> None:
    rng, n_nodes = np.random.default_rng(7), 301  # several blocks of rows, the last of them small
    usage = rng.gamma(1.0, 1.0, (20, N_RESOURCES, N_POINTS))
    base = rng.uniform(0, 1, (n_nodes, N_RESOURCES, N_POINTS))
    capacity = rng.uniform(1, 9, (n_nodes, N_RESOURCES))
    together, alone = (predicted_load(usage, np.ones(N_POINTS), base, capacity, WEIGHTS) for _ in range(2))
    asked: list[int] = []

    def soon() -> list[int]:
        asked.append(1)
        return [*range(20), *range(3)]  # it may name the profile itself, and others twice

    for _ in range(2):
        for node in rng.integers(n_nodes, size=2_000).tolist():  # more than are remembered
            together.add(3, node)
            alone.add(3, node)
        for profile in range(20):
            column = together.column(profile, soon=soon if profile == 0 else tuple)
            expected = alone.column(profile)
            np.testing.assert_array_equal(column.dot, expected.dot)
            np.testing.assert_array_equal(column.rest, expected.rest)
    assert len(asked) == 2
    together.column(0, soon=soon)
    assert len(asked) == 2  # nothing had to be read
