"""The solver finds the minimum it promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from forecast.history import Placements
from forecast.peak_weights.pods_on_nodes import Composition, compose
from forecast.peak_weights.solver import Penalties, Rows, solve


def one_slot(seed: int, n_nodes: int = 12, n_services: int = 4) -> Composition:
    """Pods at random on nodes, one slot of one day."""
    rng = np.random.default_rng(seed)
    n = 40
    runs = Placements(
        np.arange(n),
        rng.integers(0, n_services, n),
        rng.integers(0, n_nodes, n),
        np.zeros(n, dtype=np.int64),
        np.ones(n, dtype=np.int64),
    )
    return compose([runs], np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), n_services, *equal(n_nodes))


def equal(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(n_nodes, dtype=np.int64), np.ones(n_nodes)


def no_penalties(composition: Composition, **given: float) -> Penalties:
    """Only lasting deviations of nodes are held at 0."""
    shape = (composition.matrix.shape[1], 1)

    def full(value: float) -> np.ndarray:
        return np.full(shape, value, dtype=np.float32)

    free = np.ones(shape, dtype=np.bool_)
    composition.deviation(free)[...] = False
    return Penalties(
        prior=full(given.get("prior", 0.0)),
        ridge=full(given.get("ridge", 0.0)),
        slots=full(given.get("slots", 0.0)),
        kinds=full(given.get("kinds", 0.0)),
        free=free,
        signed=np.zeros(shape, dtype=np.bool_),
    )


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_without_penalties_it_is_non_negative_least_squares(seed: int) -> None:
    composition = one_slot(seed)
    y = np.random.default_rng(seed).normal(1.0, 2.0, (12, 1)).astype(np.float32)
    weak = np.full_like(y, 1e-4)  # no residual is beyond two standard deviations
    start = np.zeros((composition.matrix.shape[1], 1), dtype=np.float32)
    x = solve(composition, Rows(y, weak), no_penalties(composition), start, iterations=5000, tolerance=1e-7)
    dense = composition.matrix.toarray()[:, : len(x) - 12].astype(np.float64)
    _, best = nnls(dense, y[:, 0])
    assert (x >= 0).all()
    assert np.linalg.norm(dense @ x[:-12, 0] - y[:, 0]) == pytest.approx(best, rel=1e-3, abs=1e-3)


def test_a_wild_measurement_moves_nothing_much() -> None:
    composition = one_slot(1, n_nodes=40)
    truth = np.zeros((composition.matrix.shape[1], 1), dtype=np.float32)
    truth[:5, 0] = [1.0, 2.0, 3.0, 4.0, 5.0]
    y = composition.matrix @ truth
    wild = y.copy()
    wild[7] += 1000.0
    precise = np.full_like(y, 1 / 0.1**2)

    def fitted(values: np.ndarray) -> np.ndarray:
        start = np.zeros_like(truth)
        return solve(composition, Rows(values, precise), no_penalties(composition), start, iterations=3000)[:5]

    np.testing.assert_allclose(fitted(y), truth[:5], atol=0.02)
    np.testing.assert_allclose(fitted(wild), truth[:5], atol=0.3)


def test_what_was_not_measured_follows_its_neighbours_and_else_the_prior() -> None:
    n_nodes = 6
    runs = Placements(
        np.arange(n_nodes),
        np.zeros(n_nodes, dtype=np.int64),
        np.arange(n_nodes),
        np.zeros(n_nodes, dtype=np.int64),
        np.full(n_nodes, 48),
    )
    slots = np.arange(0, 48, 12)
    composition = compose([runs], np.zeros(1, dtype=np.int64), slots, 2, *equal(n_nodes))
    y = np.full((4 * n_nodes, 1), 3.0, dtype=np.float32)
    precision = np.full_like(y, 100.0)
    precision.reshape(4, n_nodes)[2] = 0.0
    penalties = no_penalties(composition, prior=1.0, ridge=1e-4, slots=1.0)
    composition.base(penalties.free)[...] = False  # type: ignore[arg-type]
    x = solve(composition, Rows(y, precision), penalties, penalties.prior, iterations=3000, tolerance=1e-7)
    np.testing.assert_allclose(composition.curves(x)[0, :, 0, 0], 3.0, rtol=0.01)
    np.testing.assert_allclose(composition.curves(x)[0, :, 1, 0], 1.0, rtol=0.01)  # service 1 has no pods
