"""Histories completed with what nodes tell, and nodes that feel more than their pods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forecast.history import History
from forecast.peak_weights import PeakWeights, complete_history, fit_peak_weights, pods_felt_by_nodes
from forecast.peak_weights.pods_on_nodes import day_counts
from forecast.resources import CPU, LOG
from testing.clusters.constructed import Truth, constructed


@pytest.fixture(scope="module")
def cluster() -> tuple[History, Truth]:
    history, truth = constructed(n_services=60, n_nodes=30)
    usage = history.node_usage.copy()
    usage[:, LOG, 9] *= 1.5  # a day on which everybody logs half as much again
    usage[:, LOG, 5, 12:20] = np.nan  # hours in which no node was measured
    usage[4, LOG] = np.nan  # a node that never is
    return replace(history, node_usage=usage), truth


@pytest.fixture(scope="module")
def weights(cluster: tuple[History, Truth]) -> PeakWeights:
    return fit_peak_weights(cluster[0])


def test_unmeasured_pods_get_usage_and_measured_ones_keep_theirs(
    cluster: tuple[History, Truth], weights: PeakWeights
) -> None:
    history, truth = cluster
    completed = complete_history(history, weights)
    np.testing.assert_array_equal(completed.usage_per_pod[:, :LOG], history.usage_per_pod[:, :LOG])
    np.testing.assert_array_equal(completed.node_pod_usage[:, :LOG], history.node_pod_usage[:, :LOG])
    assert np.isnan(history.usage_per_pod[:, LOG]).all()  # the argument is left alone
    total = np.nansum(completed.usage_per_pod[:, LOG] * history.replicas, axis=0)  # (n_days, 48)
    true = (truth.weight[:, LOG] * history.replicas).sum(axis=0)
    ordinary = [d for d in range(14) if d not in (5, 9)]
    np.testing.assert_allclose(total[ordinary].sum(axis=1), true[ordinary].sum(axis=1), rtol=0.08)


def test_a_busier_day_is_busier_for_its_services_and_a_gap_stays_a_gap(
    cluster: tuple[History, Truth], weights: PeakWeights
) -> None:
    history, _ = cluster
    usage = complete_history(history, weights).usage_per_pod[:, LOG]
    some = weights.weight[:, LOG, 0] > 0
    assert np.nanmedian(usage[:, 9][some] / weights.weight[:, LOG, 0][some]) == pytest.approx(1.5, abs=0.12)
    assert np.isnan(usage[:, 5, 12:20]).all() and np.isfinite(usage[:, 5, 20:]).any()
    absent = history.replicas == 0
    assert np.isnan(usage[absent]).all()


def test_the_pods_of_a_node_are_the_sum_of_what_its_services_got(
    cluster: tuple[History, Truth], weights: PeakWeights
) -> None:
    history, _ = cluster
    completed = complete_history(history, weights)
    for day, slot in ((3, 40), (9, 10), (5, 15)):
        counts = history.placements.counts(60, 30, day * 48 + slot)
        expected = counts @ np.nan_to_num(completed.usage_per_pod[:, LOG, day, slot])
        expected[(counts @ np.isnan(completed.usage_per_pod[:, LOG, day, slot])) > 0] = np.nan
        np.testing.assert_allclose(completed.node_pod_usage[:, LOG, day, slot], expected, rtol=1e-4)


def test_without_anything_to_complete_the_history_is_the_same_object() -> None:
    history, _ = constructed(n_services=20, n_nodes=8, n_days=5, unmeasured=())
    assert complete_history(history, fit_peak_weights(history)) is history


def test_nodes_feel_their_pods_corrected_and_the_cost_of_each(cluster: tuple[History, Truth]) -> None:
    history, _ = cluster
    weights = fit_peak_weights(history)
    weights.correction[3, CPU] = 1.5
    weights.per_pod_cost[CPU] = 0.25
    felt = pods_felt_by_nodes(history, weights)
    day = 6
    counts = day_counts(history.placements.between(day * 48, day * 48 + 48), 60, 30).toarray().reshape(48, 30, 48, 60)
    for slot in (0, 40):
        pods = counts[slot, :, slot]
        more = pods[:, 3] * 0.5 * np.nan_to_num(history.usage_per_pod[3, CPU, day, slot]) + 0.25 * pods.sum(axis=1)
        expected = history.node_pod_usage[:, CPU, day, slot] + more
        np.testing.assert_allclose(felt[:, CPU, day, slot], expected, rtol=1e-5)
    np.testing.assert_array_equal(felt[:, 1:LOG], history.node_pod_usage[:, 1:LOG])
