"""Node loads from placements: agreement with the slow loop, and what the calibrated z promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast.composition import NodeLoad, bound_at, node_load, peak_at, plausible_z, required_z
from forecast.history import Placements

N_NODES, N_SERVICES, N_SLOTS = 4, 3, 96


def random_placements(rng: np.random.Generator, n_pods: int) -> Placements:
    first = rng.integers(0, N_SLOTS - 1, n_pods)
    return Placements(
        pod=np.arange(n_pods),
        service=rng.integers(0, N_SERVICES, n_pods),
        node=rng.integers(0, N_NODES, n_pods),
        first=first,
        end=first + 1 + rng.integers(0, N_SLOTS, n_pods) % (N_SLOTS - first),
    )


def loop(p: Placements, usage, own, shared, base, base_variance, cluster):  # type: ignore[no-untyped-def]
    """The definition, one slot at a time."""
    mean, variance = base.copy(), base_variance.copy()
    for node in range(N_NODES):
        for slot in range(N_SLOTS):
            here = (p.node == node) & (p.first <= slot) & (p.end > slot)
            for service in range(N_SERVICES):
                count = int((p.service[here] == service).sum())
                mean[node, slot] += count * usage[service, slot]
                variance[node, slot] += count * own[service, slot] + count**2 * shared[service, slot]
    return mean, np.sqrt(variance + (cluster * mean) ** 2)


@given(seed=st.integers(0, 1000), n_pods=st.integers(0, 30))
def test_node_load_agrees_with_the_definition(seed: int, n_pods: int) -> None:
    rng = np.random.default_rng(seed)
    placements = random_placements(rng, n_pods)
    usage, own, shared = rng.random((3, N_SERVICES, N_SLOTS))
    base, base_variance = rng.random((2, N_NODES, N_SLOTS))
    load = node_load(placements, usage, own, shared, base, base_variance, 0.1)
    mean, std = loop(placements, usage, own, shared, base, base_variance, 0.1)
    np.testing.assert_allclose(load.mean, mean)
    np.testing.assert_allclose(load.std, std)


def test_errors_shared_by_replicas_do_not_average_out() -> None:
    nine = Placements(*(np.array(x) for x in (range(9), [0] * 9, [0] * 9, [0] * 9, [48] * 9)))
    nothing, one = np.zeros((1, 48)), np.ones((1, 48))
    own_only = node_load(nine, nothing, one, nothing, nothing, nothing, 0.0)
    shared_only = node_load(nine, nothing, nothing, one, nothing, nothing, 0.0)
    assert own_only.std[0, 0] == pytest.approx(3.0)
    assert shared_only.std[0, 0] == pytest.approx(9.0)


def test_required_z_is_the_smallest_that_reaches_the_peak() -> None:
    rng = np.random.default_rng(0)
    load = NodeLoad(rng.random((5, 96)), 0.1 + rng.random((5, 96)))
    actual = 3 * rng.random((5, 96))
    z = required_z(load, actual)
    peaks = actual.reshape(5, 2, 48).max(axis=2)
    for node in range(5):
        for day in range(2):
            assert peak_at(load, z[node, day])[node, day] == pytest.approx(peaks[node, day])


def test_a_quantile_of_z_covers_that_share_of_node_days() -> None:
    rng = np.random.default_rng(1)
    load = NodeLoad(rng.random((200, 480)), np.full((200, 480), 0.3))
    actual = load.mean + rng.normal(0, 0.5, load.mean.shape)
    z = required_z(load, actual)
    covered = actual.reshape(200, 10, 48).max(axis=2) <= peak_at(load, float(np.quantile(z, 0.95))) + 1e-9
    assert covered.mean() == pytest.approx(0.95, abs=0.001)


def test_unmeasured_days_have_no_z() -> None:
    load = NodeLoad(np.ones((1, 96)), np.ones((1, 96)))
    actual = np.concatenate([np.full((1, 48), np.nan), np.ones((1, 48))], axis=1)
    assert np.isnan(required_z(load, actual)[0, 0]) and np.isfinite(required_z(load, actual)[0, 1])


def test_a_forecast_without_any_scatter_errs_by_a_hundredth_of_the_load() -> None:
    one = Placements(*(np.array([x]) for x in (0, 0, 0, 0, 48)))
    usage, nothing = np.full((1, 48), 8.0), np.zeros((1, 48))
    load = node_load(one, usage, nothing, nothing, nothing, nothing, 0.0)
    np.testing.assert_allclose(load.std, 0.08)


def test_load_and_bounds_are_never_below_zero() -> None:
    one = Placements(*(np.array([x]) for x in (0, 0, 0, 0, 48)))
    usage, nothing = np.ones((1, 48)), np.zeros((1, 48))
    load = node_load(one, usage, nothing, nothing, np.full((1, 48), -3.0), nothing, 0.0)
    assert (load.mean == 0).all()
    assert (bound_at(NodeLoad(np.ones((1, 48)), np.ones((1, 48))), -5.0) == 0).all()


@pytest.mark.parametrize(
    ("z", "limited"),
    [
        ((0.3, 2.2), (0.3, 2.2)),
        ((-0.5, 1.0), (-0.5, 1.0)),
        ((-1.3e8, -1.3e8), (-1.0, 0.0)),
        ((1e9, 1e9), (np.sqrt(95), np.sqrt(959))),
        ((np.nan, np.inf), (0.0, np.sqrt(959))),
        ((3.0, 1.0), (3.0, 3.0)),
    ],
)
def test_z_is_limited_to_what_any_distribution_allows(z: tuple[float, float], limited: tuple[float, float]) -> None:
    np.testing.assert_allclose(plausible_z(np.array([z]), (0.5, 0.95)), [limited])


def test_a_node_day_without_forecast_and_without_usage_needs_no_z() -> None:
    nothing = np.zeros((1, 48))
    assert required_z(NodeLoad(nothing, nothing), nothing)[0, 0] == 0
