"""A node of unknown size is neither the best nor the worst: nobody knows."""

from __future__ import annotations

import warnings

import numpy as np

from scorer.scores.energy import EnergyTable, ServiceCurves, energy_growth
from scorer.scores.least_allocated import least_allocated_score
from scorer.scores.predicted_peak import PredictedLoad

CAPACITY = np.array([[10.0, 5.0], [np.nan, np.nan], [20.0, np.nan], [40.0, 5.0]])


def curves() -> ServiceCurves:
    none = np.zeros((1, 2))
    return ServiceCurves(np.ones((1, 2, 3)), np.ones(3), none, none)


def test_a_node_without_any_capacity_costs_as_much_as_the_median_of_the_others() -> None:
    nothing = np.zeros((4, 2, 3))
    table = EnergyTable(curves(), nothing, CAPACITY, np.ones(2))
    load = PredictedLoad(curves().usage, np.ones(3), nothing, CAPACITY, np.ones(2))
    defined = energy_growth(np.zeros((4, 1)), 0, curves(), nothing, CAPACITY, np.ones(2))
    for cost in (table.growth(0), load.growth(0, np.arange(4)), defined):
        assert cost[1] == np.median(cost[[0, 2, 3]]) > 0
        # One unknown resource among known ones stays no limit.
        assert cost[2] < cost[3]


def test_without_any_capacity_at_all_nodes_are_equal() -> None:
    table = EnergyTable(curves(), np.zeros((4, 2, 3)), np.full((4, 2), np.nan), np.ones(2))
    assert table.growth(0).tolist() == [0, 0, 0, 0]


def test_least_allocated_leaves_out_what_is_not_known() -> None:
    unknown = np.array([[4.0, np.inf], [4.0, np.nan], [4.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = least_allocated_score(np.zeros((3, 2)), np.array([1.0, 1e9]), unknown)
    assert score.tolist() == [75, 75, 75]
