from __future__ import annotations

import numpy as np
import pytest

from base.arrays import Floats
from forecast.expert_weights import LEARNING_DAYS, decayed_sums, expert_losses, series_weights
from forecast.quantiles import pinball_loss

EQUAL = np.full((1, 3), 1 / 3)


def losses_of(actual: Floats, experts: Floats, quantile: float) -> Floats:
    """actual: (n_days,), experts: (n_days, n_experts) of one series of scale 1 -> (1, n_days, n_experts)."""
    return expert_losses(actual, experts, np.ones(len(actual)), quantile)[None]


def weights_of(losses: Floats, prior: Floats, quantile: float) -> Floats:
    """losses: (n_series, n_days, n_experts)"""
    return series_weights(*decayed_sums(losses), prior, quantile)


@pytest.mark.parametrize("quantile", [0.5, 0.95])
def test_a_series_moves_to_the_expert_that_was_right_about_it(quantile: float) -> None:
    actual = np.random.default_rng(0).uniform(0.8, 1.2, LEARNING_DAYS)
    experts = np.stack([actual + 0.01, np.full(LEARNING_DAYS, 0.4), np.full(LEARNING_DAYS, 3.0)], axis=1)
    weights = weights_of(losses_of(actual, experts, quantile), EQUAL, quantile)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0, 0] > 0.95


def test_the_blend_of_each_series_beats_the_prior_where_series_differ() -> None:
    rng = np.random.default_rng(1)
    n_series, n_days = 200, LEARNING_DAYS + 1
    level = rng.choice([0.5, 1.0], n_series)
    actual = level[:, None] * rng.lognormal(0, 0.1, (n_series, n_days))
    experts = np.broadcast_to(np.array([0.5, 1.0, 2.0]), (n_series, n_days, 3))
    losses = np.stack(
        [expert_losses(actual[:, d], experts[:, d], np.ones(n_series), 0.5) for d in range(LEARNING_DAYS)], axis=1
    )
    weights = weights_of(losses, np.repeat(EQUAL, n_series, axis=0), 0.5)
    own = (weights * experts[:, -1]).sum(axis=1)
    shared = experts[:, -1].mean(axis=1)
    assert pinball_loss(actual[:, -1], own, 0.5).mean() < 0.5 * pinball_loss(actual[:, -1], shared, 0.5).mean()


def test_the_unit_of_a_series_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    actual, experts = rng.gamma(2.0, size=10), rng.gamma(2.0, size=(10, 3))
    small = expert_losses(actual, experts, np.full(10, 2.0), 0.95)
    large = expert_losses(1e9 * actual, 1e9 * experts, np.full(10, 2e9), 0.95)
    np.testing.assert_allclose(small, large)


def test_days_without_a_measurement_and_idle_series_leave_the_prior() -> None:
    prior = np.array([[0.7, 0.2, 0.1]])
    nothing = np.full((1, LEARNING_DAYS, 3), np.nan)
    np.testing.assert_allclose(weights_of(nothing, prior, 0.5), prior, atol=2e-3)
    np.testing.assert_allclose(weights_of(nothing[:, :0], prior, 0.5), prior, atol=2e-3)
    idle = expert_losses(np.zeros(LEARNING_DAYS), np.zeros((LEARNING_DAYS, 3)), np.zeros(LEARNING_DAYS), 0.5)[None]
    np.testing.assert_allclose(weights_of(idle, prior, 0.5), prior, atol=2e-3)
    assert np.isnan(expert_losses(np.array([np.nan]), np.ones((1, 3)), np.ones(1), 0.5)).all()


def test_more_days_move_further_from_the_prior() -> None:
    actual = np.ones(LEARNING_DAYS)
    experts = np.tile([1.05, 1.1, 1.2], (LEARNING_DAYS, 1))
    losses = losses_of(actual, experts, 0.5)
    few, many = (weights_of(losses[:, -n:], EQUAL, 0.5)[0, 0] for n in (2, LEARNING_DAYS))
    assert 1 / 3 < few < many


def test_one_freak_day_does_not_decide_alone() -> None:
    actual = np.ones(LEARNING_DAYS)
    actual[5] = 1e6
    experts = np.tile([1.0, 1.3, 2.0], (LEARNING_DAYS, 1))
    weights = weights_of(losses_of(actual, experts, 0.5), EQUAL, 0.5)
    assert weights[0].argmax() == 0


def test_both_quantiles_are_summed_at_once() -> None:
    losses = np.random.default_rng(3).gamma(2.0, size=(4, LEARNING_DAYS, 3, 2))
    losses[1, 4] = np.nan
    total, days = decayed_sums(losses)
    assert total.shape == (4, 3, 2)
    for level in (0, 1):
        alone, days_alone = decayed_sums(losses[..., level])
        np.testing.assert_allclose(total[..., level], alone)
        np.testing.assert_allclose(days, days_alone)
    assert days[1] < days[0] < LEARNING_DAYS
