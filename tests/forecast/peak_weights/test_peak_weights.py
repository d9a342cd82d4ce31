"""Weights learned from nodes alone: right where they say they are known, and known to be unknown elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from base.arrays import Bools, Floats
from forecast.history import History
from forecast.peak_weights import PeakWeights, fit_peak_weights
from forecast.resources import CPU, LOG, RESOURCES
from testing.clusters.constructed import Truth, constructed


@pytest.fixture(scope="module")
def cluster() -> tuple[History, Truth]:
    return constructed(n_services=100, n_nodes=50)


@pytest.fixture(scope="module")
def weights(cluster: tuple[History, Truth]) -> PeakWeights:
    return fit_peak_weights(cluster[0])


def workdays(history: History) -> Bools:
    return np.array([day.weekday() < 5 for day in history.days])


def level_and_peak_error(history: History, truth: Truth, weights: PeakWeights, resource: int) -> tuple[Floats, Floats]:
    """Relative error of workdays' mean and at the slot of the true peak, both (n_services,)."""
    true = truth.weight[:, resource][:, workdays(history)].mean(axis=1)
    ours = weights.weight[:, resource, 0]
    rows, at = np.arange(len(true)), true.argmax(axis=1)
    return np.abs(ours.mean(axis=1) / true.mean(axis=1) - 1), np.abs(ours[rows, at] / true[rows, at] - 1)


def load_of(history: History, truth: Truth, resource: int) -> Floats:
    load = history.replicas.mean(axis=(1, 2)) * truth.weight[:, resource].mean(axis=(1, 2))
    return np.asarray(load / load.sum(), dtype=np.float64)


@pytest.mark.parametrize("seed", [0, 1])
def test_most_of_the_load_is_identified_within_ten_percent_by_the_nodes_alone(seed: int) -> None:
    history, truth = constructed(n_services=100, n_nodes=50, seed=seed)
    weights = fit_peak_weights(history)
    level, peak = level_and_peak_error(history, truth, weights, LOG)
    load, known = load_of(history, truth, LOG), weights.identified[:, LOG]
    assert np.isnan(history.usage_per_pod[:, LOG]).all() and weights.from_nodes[:, LOG].all()
    assert load[known].sum() >= 0.9
    assert load[known & (level <= 0.1)].sum() >= 0.9 * load[known].sum()
    assert load[known & (peak <= 0.1)].sum() >= 0.8 * load[known].sum()
    assert (load * level)[known].sum() / load[known].sum() < 0.04
    assert (load * peak)[known].sum() / load[known].sum() < 0.07


def test_errors_tell_how_far_off_a_weight_is(cluster: tuple[History, Truth], weights: PeakWeights) -> None:
    history, truth = cluster
    level, _ = level_and_peak_error(history, truth, weights, LOG)
    assert (level > 2 * weights.error[:, LOG]).mean() < 0.05
    # And they are not merely large: the best known half is off by less than the worst known half.
    order = np.argsort(weights.error[:, LOG])
    assert level[order[:50]].mean() < 0.5 * level[order[50:]].mean()


def test_weights_are_never_negative_and_know_evening_from_morning(
    cluster: tuple[History, Truth], weights: PeakWeights
) -> None:
    history, truth = cluster
    assert (weights.weight[:, LOG] >= 0).all() and np.isfinite(weights.weight[:, LOG]).all()
    true = truth.weight[:, LOG][:, workdays(history)].mean(axis=1)
    swinging = weights.identified[:, LOG] & (true.max(axis=1) > 3 * true.min(axis=1))
    away = np.abs(weights.weight[:, LOG, 0].argmax(axis=1) - true.argmax(axis=1))
    assert swinging.sum() > 20 and np.median(away[swinging]) <= 2


def test_services_that_always_sit_together_are_not_identified_but_their_sum_is_right() -> None:
    history, truth = constructed(n_services=60, n_nodes=30, seed=3)
    # Service 1 takes the places of service 0, pod by pod.
    runs, keep = history.placements, history.placements.service != 1
    twin = runs.service == 0
    joined = replace(
        runs,
        pod=np.concatenate([runs.pod[keep], runs.pod[twin] + len(runs.pod)]),
        service=np.concatenate([runs.service[keep], np.ones(twin.sum(), dtype=np.int64)]),
        node=np.concatenate([runs.node[keep], runs.node[twin]]),
        first=np.concatenate([runs.first[keep], runs.first[twin]]),
        end=np.concatenate([runs.end[keep], runs.end[twin]]),
    )
    history = with_log_of(replace(history, placements=joined), truth)
    weights = fit_peak_weights(history)
    assert not weights.identified[:2, LOG].any() and weights.identified[:, LOG].mean() > 0.7
    together = weights.weight[:2, LOG, 0].sum(axis=0).mean()
    assert together == pytest.approx(truth.weight[:2, LOG][:, workdays(history)].mean(axis=(1, 2)).sum(), rel=0.15)


def with_log_of(history: History, truth: Truth) -> History:
    """Log usage of the nodes for other placements than the history was made with."""
    usage = history.node_usage.copy()
    noise = np.random.default_rng(9)
    begin = history.placements.first
    shape = usage[:, LOG].shape
    usage[:, LOG] = 5e4 * history.capacity[:, CPU, None, None] / 16
    for s in range(len(history.services)):
        curve = truth.weight[s, LOG].ravel()
        for run in np.flatnonzero(history.placements.service == s):
            at = slice(begin[run], history.placements.end[run])
            usage[history.placements.node[run], LOG].reshape(-1)[at] += curve[at]
    usage[:, LOG] *= np.exp(0.05 * noise.standard_normal(shape))
    return replace(history, node_usage=usage)


def test_nodes_that_lie_do_not_move_the_others_services(cluster: tuple[History, Truth], weights: PeakWeights) -> None:
    history, truth = cluster
    usage = history.node_usage.copy()
    usage[[3, 17], LOG] *= 4.0
    usage[5, LOG, 2, 10:14] *= 50.0
    lying = fit_peak_weights(replace(history, node_usage=usage))
    level, _ = level_and_peak_error(history, truth, lying, LOG)
    load, known = load_of(history, truth, LOG), lying.identified[:, LOG]
    assert load[known].sum() > 0.6
    assert (load * level)[known].sum() / load[known].sum() < 0.08


def test_gaps_cost_little(cluster: tuple[History, Truth], weights: PeakWeights) -> None:
    history, truth = cluster
    usage = history.node_usage.copy()
    usage[np.random.default_rng(1).random(usage.shape) < 0.15] = np.nan
    usage[:, :, 4] = np.nan
    usage[7, LOG] = np.nan
    gappy = fit_peak_weights(replace(history, node_usage=usage))
    level, _ = level_and_peak_error(history, truth, gappy, LOG)
    load, known = load_of(history, truth, LOG), gappy.identified[:, LOG]
    assert load[known].sum() > 0.8 and (load * level)[known].sum() / load[known].sum() < 0.06


def test_the_order_of_services_and_nodes_means_nothing() -> None:
    history, _ = constructed(n_services=40, n_nodes=20, cost_share=0.2, factor_share=0.3)
    rng = np.random.default_rng(2)
    s, n = rng.permutation(len(history.services)), rng.permutation(len(history.nodes))
    runs = history.placements
    other = replace(
        history,
        services=tuple(history.services[i] for i in s),
        nodes=tuple(history.nodes[i] for i in n),
        usage_per_pod=history.usage_per_pod[s],
        replicas=history.replicas[s],
        daily_requests=history.daily_requests[s],
        node_usage=history.node_usage[n],
        node_pod_usage=history.node_pod_usage[n],
        capacity=history.capacity[n],
        placements=replace(runs, service=np.argsort(s)[runs.service], node=np.argsort(n)[runs.node]),
    )
    one, two = fit_peak_weights(history), fit_peak_weights(other)
    level = one.weight.mean(axis=(2, 3), keepdims=True)[s]
    np.testing.assert_allclose(two.weight / level, one.weight[s] / level, atol=0.02)
    np.testing.assert_allclose(two.correction, one.correction[s], atol=1e-2)
    assert (two.identified == one.identified[s]).mean() > 0.98


def test_units_scale_through() -> None:
    history, _ = constructed(n_services=30, n_nodes=12, n_days=7)
    usage = history.node_usage.copy()
    usage[:, LOG] *= 1024.0
    one, two = fit_peak_weights(history), fit_peak_weights(replace(history, node_usage=usage))
    np.testing.assert_allclose(two.weight[:, LOG], 1024 * one.weight[:, LOG], rtol=1e-3)
    np.testing.assert_allclose(two.error[:, LOG], one.error[:, LOG], rtol=1e-2)


def test_a_service_measured_somewhere_is_no_guess_and_the_unmeasured_one_is_found_beside_it() -> None:
    history, truth = constructed(n_services=60, n_nodes=30, unmeasured=())
    usage, pods = history.usage_per_pod.copy(), history.node_pod_usage.copy()
    hidden = 7  # as pods on the host network: their own usage is not to be had
    usage[hidden, CPU] = np.nan
    for run in np.flatnonzero(history.placements.service == hidden):
        at = slice(history.placements.first[run], history.placements.end[run])
        pods[history.placements.node[run], CPU].reshape(-1)[at] -= truth.weight[hidden, CPU].ravel()[at]
    weights = fit_peak_weights(replace(history, usage_per_pod=usage, node_pod_usage=pods))
    assert weights.from_nodes[hidden, CPU] and weights.from_nodes.sum() == 1 and weights.identified[hidden, CPU]
    true = truth.weight[hidden, CPU][workdays(history)].mean(axis=0)
    assert weights.weight[hidden, CPU, 0].mean() == pytest.approx(true.mean(), rel=0.1)
    measured = np.nanmean(history.usage_per_pod[0, CPU][workdays(history)], axis=0)
    np.testing.assert_allclose(weights.weight[0, CPU, 0], measured, rtol=1e-5)


@pytest.mark.parametrize("what", ["no pods", "one node", "nothing measured", "one day", "no requests", "idle nodes"])
def test_clusters_that_tell_nothing_give_no_weights_and_no_error(what: str) -> None:
    history, _ = constructed(n_services=6, n_nodes=1 if what == "one node" else 4, n_days=1 if what == "one day" else 7)
    runs = history.placements
    if what == "no pods":
        none = np.empty(0, dtype=np.int64)
        history = replace(history, placements=type(runs)(none, none, none, none, none))
    elif what == "nothing measured":
        history = replace(history, node_usage=np.full_like(history.node_usage, np.nan))
    elif what == "no requests":
        history = replace(history, daily_requests=np.full_like(history.daily_requests, np.nan))
    elif what == "idle nodes":
        history = replace(history, node_usage=np.zeros_like(history.node_usage))
    weights = fit_peak_weights(history)
    assert weights.weight.shape == (6, len(RESOURCES), 4, 48)
    assert (weights.correction == 1).all() and (weights.per_pod_cost == 0).all()
    if what == "no requests":
        assert np.isfinite(weights.weight[:, LOG]).all()
    else:
        assert np.isnan(weights.weight[:, LOG]).all() and not weights.identified[:, LOG].any()


def test_weights_that_are_not_identified_are_published_as_their_prior() -> None:
    history, truth = constructed(n_services=60, n_nodes=30, seed=4)
    runs = history.placements
    moved = replace(runs, node=np.where(runs.service == 2, 5, runs.node))
    history = with_log_of(replace(history, placements=moved), truth)
    weights = fit_peak_weights(history)
    published, error = weights.published()
    known = weights.identified[:, LOG]
    assert not known[2] and known.any()
    np.testing.assert_array_equal(published[known, LOG], weights.weight[known, LOG])
    np.testing.assert_array_equal(error[known, LOG], weights.error[known, LOG])
    level = weights.prior[~known, LOG, None, None] + weights.per_pod_cost[LOG]
    np.testing.assert_allclose(published[~known, LOG], level)
    assert (error[~known, LOG] >= 1).all()
    np.testing.assert_array_equal(published[:, CPU], weights.weight[:, CPU])
    assert (weights.correction[~weights.identified] == 1).all(), "only identified weights may correct"


def test_what_nodes_determine_falls_where_services_always_sit_together() -> None:
    history, truth = constructed(n_services=60, n_nodes=30, seed=3)
    free = fit_peak_weights(with_log_of(history, truth)).determined[:, LOG]
    assert ((free >= 0) & (free <= 1)).all()
    runs = history.placements
    joined = replace(runs, node=np.where(runs.service < 40, runs.pod % 2, runs.node))
    tied = fit_peak_weights(with_log_of(replace(history, placements=joined), truth)).determined[:, LOG]
    assert np.nansum(tied) < 0.8 * np.nansum(free)
