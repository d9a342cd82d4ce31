"""What nodes feel of measured pods beyond their measured usage: found where it is, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from forecast.peak_weights import complete_history, fit_peak_weights, pods_felt_by_nodes
from forecast.resources import CPU, LOG
from testing.clusters.constructed import constructed, hide


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("node_deviation", [0.0, 0.3])
def test_nothing_is_corrected_where_nodes_are_the_sum_of_their_pods_and_a_base(
    seed: int, node_deviation: float
) -> None:
    history, _ = constructed(n_services=40, n_nodes=20, seed=seed, node_deviation=node_deviation)
    weights = fit_peak_weights(history)
    assert (weights.correction == 1.0).all() and (weights.per_pod_cost == 0.0).all()
    assert pods_felt_by_nodes(history, weights) is history.node_pod_usage


def test_services_that_nodes_feel_more_of_are_found_and_no_others() -> None:
    history, truth = constructed(n_services=100, n_nodes=50, factor_share=0.3)
    weights = fit_peak_weights(history)
    load = history.replicas.mean(axis=(1, 2)) * truth.weight[:, CPU].mean(axis=(1, 2))
    true, found = truth.factor[:, CPU] > 1, weights.correction[:, CPU] != 1
    assert load[true & found].sum() > 0.9 * load[true].sum()
    assert load[~true & found].sum() < 0.02 * load[~true].sum()
    wrong = np.abs(weights.correction[:, CPU] - truth.factor[:, CPU])
    assert (wrong * load)[true].sum() / load[true].sum() < 0.08
    assert (weights.correction[:, LOG] == 1).all()  # what is learned from nodes is felt by them as it is


def test_what_every_pod_costs_is_found_with_its_time_of_day() -> None:
    history, truth = constructed(n_services=100, n_nodes=50, cost_share=0.2)
    cost = fit_peak_weights(history).per_pod_cost[CPU, 0]
    assert cost[40] == pytest.approx(truth.cost[CPU], rel=0.25) and cost[20] < 0.2 * truth.cost[CPU]


@pytest.mark.parametrize("seed", [0, 3])
def test_the_cost_of_a_pod_counts_once_whether_the_pod_is_measured_or_not(seed: int) -> None:
    history, truth = constructed(n_services=100, n_nodes=50, cost_share=0.4, seed=seed)
    hidden = np.arange(100) % 3 == 0
    history = hide(history, truth, CPU, hidden)
    weights = fit_peak_weights(history)
    cost, day = weights.per_pod_cost[CPU, 0], 8  # a workday
    assert cost[40] == pytest.approx(truth.cost[CPU], rel=0.15)
    own = truth.weight[:, CPU, day, 40].astype(np.float64)
    completed = complete_history(history, weights)
    for pods in (hidden, ~hidden):
        true = own[pods].mean() + truth.cost[CPU]
        assert weights.weight[pods, CPU, 0, 40].mean() == pytest.approx(true, rel=0.05)
        used = completed.usage_per_pod[pods, CPU, day, 40].mean()
        assert used == pytest.approx(own[pods].mean(), rel=0.06) and used + cost[40] == pytest.approx(true, rel=0.05)
    assert weights.identified[hidden, CPU].mean() > 0.6
    felt = pods_felt_by_nodes(completed, weights)[:, CPU, day, 40]
    pods_of = history.placements.counts(100, 50, day * 48 + 40)
    assert felt.sum() == pytest.approx((pods_of @ (own + truth.cost[CPU])).sum(), rel=0.05)
