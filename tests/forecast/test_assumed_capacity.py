"""Capacities learned from what nodes of a kind have sustained: when there are some, and what they are never."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast.assumed_capacity import (
    LEAST_DAYS,
    LEAST_NODES,
    MARGIN,
    assumed_capacities,
    kinds_of_nodes,
    sustained_rates,
)
from forecast.history import History
from forecast.resources import CPU, DISK, LOG, MEMORY, NETWORK, RESOURCES
from tests.synthetic import synthetic_history

ASSUMED = [DISK, NETWORK, LOG]


def without_capacities(history: History, resources: list[int] = ASSUMED) -> History:
    """The history as Kubernetes tells it: CPU and memory only."""
    capacity = history.capacity.copy()
    capacity[:, resources] = np.nan
    return replace(history, capacity=capacity)


def with_usage(rates: list[float], cpu: list[float] | None = None, n_days: int = LEAST_DAYS) -> History:
    """Nodes that write to their disks at a constant rate each, and have no known capacity of disk, network and log."""
    history = without_capacities(synthetic_history(n_nodes=len(rates), n_days=n_days))
    usage, capacity = history.node_usage.copy(), history.capacity.copy()
    usage[:, DISK] = np.array(rates)[:, None, None]
    if cpu is not None:
        capacity[:, CPU] = cpu
    return replace(history, node_usage=usage, capacity=capacity)


def test_a_kind_can_do_what_its_busiest_node_has_sustained_and_a_half_more() -> None:
    found = assumed_capacities(with_usage([100.0, 60.0, 80.0, 7.0, 5.0, 6.0], cpu=[8, 8, 8.04, 16, 16, 16]))
    np.testing.assert_allclose(found[:, DISK], MARGIN * np.array([100, 100, 100, 7, 7, 7]))
    assert np.isnan(found[:, [CPU, MEMORY]]).all()  # Kubernetes knows these


@pytest.mark.parametrize(
    ("rates", "cpu", "n_days"),
    [
        pytest.param([9.0] * (LEAST_NODES - 1), None, LEAST_DAYS, id="too few nodes"),
        pytest.param([9.0] * LEAST_NODES, None, LEAST_DAYS - 1, id="too few days"),
        pytest.param([9.0] * LEAST_NODES, [8.0, 16.0, 32.0], LEAST_DAYS, id="each of another kind"),
        pytest.param([9.0] * LEAST_NODES, [np.nan] * LEAST_NODES, LEAST_DAYS, id="of no known kind"),
        pytest.param([np.nan] * LEAST_NODES, None, LEAST_DAYS, id="never measured"),
        pytest.param([0.0] * LEAST_NODES, None, LEAST_DAYS, id="never used"),
    ],
)
def test_too_little_to_learn_from_gives_none(rates: list[float], cpu: list[float] | None, n_days: int) -> None:
    assert np.isnan(assumed_capacities(with_usage(rates, cpu, n_days))[:, DISK]).all()


def test_a_node_measured_for_an_hour_a_day_is_no_witness() -> None:
    history = with_usage([9.0] * LEAST_NODES, n_days=28)
    usage = history.node_usage.copy()
    usage[0, DISK, :, 2:] = np.nan
    assert np.isnan(assumed_capacities(replace(history, node_usage=usage))[:, DISK]).all()


def test_known_capacities_stay_and_nodes_like_a_known_one_get_none() -> None:
    history = with_usage([9.0] * 8, cpu=[8.0] * 4 + [16.0] * 4)
    capacity = history.capacity.copy()
    capacity[0, DISK] = 77.0
    found = assumed_capacities(replace(history, capacity=capacity))
    assert np.isnan(found[:4, DISK]).all()  # the scorer takes the three for nodes with 77, too
    np.testing.assert_allclose(found[4:, DISK], MARGIN * 9)
    assert np.isnan(assumed_capacities(synthetic_history())).all()


def test_one_broken_counter_does_not_set_the_capacity_of_a_kind() -> None:
    history = with_usage([9.0] * LEAST_NODES)
    usage = history.node_usage.copy()
    usage[0, DISK, 2, 30:33] = 1e12  # an hour and a half, once
    broken = assumed_capacities(replace(history, node_usage=usage))
    np.testing.assert_allclose(broken[:, DISK], MARGIN * 9)


def test_a_nightly_backup_counts() -> None:
    history = with_usage([9.0] * LEAST_NODES)
    usage = history.node_usage.copy()
    usage[1, DISK, :, 4] = 50.0  # half an hour a night
    np.testing.assert_allclose(assumed_capacities(replace(history, node_usage=usage))[:, DISK], MARGIN * 50)


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 1_000_000),
    n_nodes=st.integers(1, 8),
    n_days=st.integers(1, 12),
    kinds=st.integers(1, 3),
    missing=st.floats(0, 0.9),
    scale=st.sampled_from([0.0, 1e-6, 1.0, 1e9]),
)
def test_what_is_learned_is_finite_positive_repeatable_and_above_what_was_sustained(
    seed: int, n_nodes: int, n_days: int, kinds: int, missing: float, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    history = synthetic_history(n_services=2, n_nodes=n_nodes, n_days=n_days)
    usage = (scale * rng.lognormal(size=history.node_usage.shape)).astype(np.float32)
    usage[rng.random(usage.shape) < missing] = np.nan
    capacity = np.where(rng.random((n_nodes, len(RESOURCES))) < 0.2, 40.0, np.nan)
    capacity[:, CPU] = rng.choice([8.0, 16.0, np.nan][:kinds], size=n_nodes)
    history = replace(history, node_usage=usage, capacity=capacity)
    found = assumed_capacities(history)
    np.testing.assert_array_equal(found, assumed_capacities(history))
    learned = np.isfinite(found)
    assert (found[learned] > 0).all() and not np.isinf(found).any()
    assert not (learned & np.isfinite(capacity)).any()
    of_kind = kinds_of_nodes(capacity[:, CPU])
    for resource in ASSUMED:
        sustained = sustained_rates(usage[:, resource])
        for node in np.flatnonzero(learned[:, resource]).tolist():
            like = of_kind == of_kind[node]
            assert np.isfinite(sustained[like]).sum() >= LEAST_NODES
            assert found[node, resource] >= np.nanmax(sustained[like])
            assert (found[like, resource] == found[node, resource]).all()
    shuffled = rng.permutation(n_nodes)
    again = assumed_capacities(replace(history, node_usage=usage[shuffled], capacity=capacity[shuffled]))
    np.testing.assert_array_equal(again, found[shuffled])


def test_sizes_within_a_hundredth_are_one_kind() -> None:
    sizes = np.array([16.0, np.nan, 8.0, 8.05, 8.2, 16.1])
    assert kinds_of_nodes(sizes).tolist() == [2, -1, 0, 0, 1, 2]


def test_days_on_which_a_node_was_of_another_kind_say_nothing_of_its_present_one() -> None:
    """A large node wrote 900 to its disk before it was rebuilt small."""
    history = with_usage([10.0, 10.0, 10.0, 10.0], n_days=2 * LEAST_DAYS)
    history.node_usage[0, DISK, :LEAST_DAYS] = 900.0
    then = np.array(history.capacity_of_days)
    then[0, CPU, :LEAST_DAYS] *= 4
    np.testing.assert_allclose(assumed_capacities(history)[:, DISK], MARGIN * 900)
    np.testing.assert_allclose(assumed_capacities(replace(history, daily_capacity=then))[:, DISK], MARGIN * 10)
