"""The penalty, its expectation over the forecast's error, and what is counted as hot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from base.arrays import Floats
from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU, DISK, LOG, MEMORY, NETWORK
from rebalancer.planning.heat import (
    SCENARIOS,
    hot_half_hours,
    n_hot_resources,
    node_heat,
    penalty,
    pieces,
    resources_that_count,
)
from tests.rebalancer.planning.small_problem import cpu_problem


@pytest.mark.parametrize(("share", "wanted"), [(0.0, 0), (0.7, 0), (0.75, 0.1), (0.8, 0.2), (0.9, 1.0), (1.2, 3.4)])
def test_the_penalty_of_a_share(share: float, wanted: float) -> None:
    assert penalty(np.array([share]), HOT_SHARE)[0] == pytest.approx(wanted)


@given(st.floats(-1, 3))
def test_the_penalty_is_the_upper_envelope_of_its_lines(share: float) -> None:
    lines = [0.0, *(slope * share + intercept for slope, intercept in pieces(HOT_SHARE))]
    assert penalty(np.array([share]), HOT_SHARE)[0] == pytest.approx(max(lines))


@given(arrays(float, (3, 2, 4), elements=st.floats(0, 2)), arrays(float, (3, 2, 4), elements=st.floats(0, 1)))
def test_heat_is_the_mean_over_the_error_of_the_worst_resource(share: Floats, margin: Floats) -> None:
    wanted = np.zeros(3)
    for node, slot in np.ndindex(3, 4):
        for error, weight in SCENARIOS:
            worst = max(share[node, r, slot] + error * margin[node, r, slot] for r in range(2))
            wanted[node] += weight * penalty(np.array([worst]), HOT_SHARE)[0]
    np.testing.assert_allclose(node_heat(share, margin, HOT_SHARE), wanted, atol=1e-12)


def test_a_half_hour_is_hot_above_the_hot_share_of_any_resource() -> None:
    share = np.array([[[0.8, 0.81, 0.0], [0.0, 0.9, 0.81]]])
    assert hot_half_hours(share, HOT_SHARE) == 2
    assert hot_half_hours(share, 0.85) == 1


def test_resources_that_limit_no_node_are_left_out_and_memory_comes_last() -> None:
    problem = cpu_problem([(0, 1.0)], [10.0])
    assert resources_that_count(problem) == [CPU]
    full = replace(problem, capacity=np.ones((1, 5)))
    assert resources_that_count(full) == [CPU, DISK, NETWORK, LOG, MEMORY]
    assert n_hot_resources(resources_that_count(full)) == 4
