"""Packing keeps to its limit, and an outcome counts what its definition says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks.decision_packing import Demand, Rule, at_utilisation, outcome, pack
from forecast.arrays import Floats
from forecast.composition import bound_at, node_load
from forecast.history import Placements

curves_of_pods = arrays(np.float64, (12, 6), elements=st.floats(0, 0.9))


@pytest.mark.parametrize("rule", list(Rule))
@given(curves=curves_of_pods)
def test_no_node_is_packed_over_its_limit(rule: Rule, curves: Floats) -> None:
    node_of = pack(Demand(curves), 1.0, rule)
    load = np.zeros((12, 6))
    np.add.at(load, node_of, curves)
    assert (load <= 1 + 1e-9).all()
    assert set(node_of) == set(range(node_of.max() + 1))


@given(curves=curves_of_pods, variance=curves_of_pods, z=st.floats(0.1, 3))
def test_bounds_of_nodes_are_those_that_the_model_composes(curves: Floats, variance: Floats, z: float) -> None:
    demand = Demand(curves, variance, cluster_std=0.1, z=z)
    node_of = pack(demand, 1.0)
    n_pods, n_slots = curves.shape
    pods = np.arange(n_pods)
    placements = Placements(pods, pods, node_of, np.zeros(n_pods, dtype=np.int64), np.full(n_pods, n_slots))
    nothing = np.zeros((int(node_of.max()) + 1, n_slots))
    load = node_load(placements, curves, variance, np.zeros_like(curves), nothing, nothing, 0.1)
    shared = np.bincount(node_of) > 1
    assert (bound_at(load, z)[shared] <= 1 + 1e-9).all()


def test_a_pod_larger_than_a_node_gets_one_of_its_own() -> None:
    node_of = pack(Demand(np.array([[0.2], [1.5], [0.3]])), 1.0)
    assert node_of.tolist() == [1, 0, 1]


def test_pods_whose_hours_differ_share_a_node_and_at_their_peak_they_do_not() -> None:
    demand = Demand(np.array([[0.9, 0.1], [0.1, 0.9]]))
    assert pack(demand, 1.0).tolist() == [0, 0]
    assert pack(demand.at_peak(), 1.0).tolist() == [0, 1]


def test_best_fit_takes_the_fullest_node_and_first_fit_the_first() -> None:
    demand = Demand(np.array([[0.01], [0.65], [0.62], [0.36]]))
    # By size: 0.65 opens node 0, 0.62 node 1, which alone has room for 0.36. Then both have room for 0.01.
    assert pack(demand, 1.0, Rule.FIRST_FIT).tolist() == [0, 0, 1, 1]
    assert pack(demand, 1.0, Rule.BEST_FIT).tolist() == [1, 0, 1, 1]


def test_an_outcome_counts_half_hours_of_nodes_and_their_mean_excess() -> None:
    actual = np.array([[0.5, 1.0], [0.5, 0.5], [0.2, 0.2]])
    found = outcome(np.array([0, 0, 1]), actual, capacity=1.0)
    assert found.utilisation == pytest.approx((1.0 + 1.5 + 0.2 + 0.2) / 4)
    assert found.violation_rate == pytest.approx(1 / 4)
    assert found.severity == pytest.approx(0.5)


def test_lines_are_compared_at_equal_utilisation_and_not_beyond_their_ends() -> None:
    line = np.array([[0.8, 0.3], [0.4, 0.1]])
    assert at_utilisation(line, 0.6, 1) == pytest.approx(0.2)
    assert at_utilisation(line, 0.8, 1) == pytest.approx(0.3)
    assert at_utilisation(np.array([[0.8, 0.3], [0.4, 0.1], [0.8, 0.5]]), 0.8, 1) == pytest.approx(0.4)
    assert np.isnan(at_utilisation(line, 0.9, 1))
    assert np.isnan(at_utilisation(line, 0.3, 1))
