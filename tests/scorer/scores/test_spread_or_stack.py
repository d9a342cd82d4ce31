from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.errors import InputError
from cluster.water_level import WaterLevels, next_stack_weight, water_level
from scorer.scores.spread_or_stack import spread_or_stack_score
from testing.constants import with_constants

LEVELS = with_constants(WaterLevels(), lower=0.5, upper=0.7, hysteresis=0.1)
level = st.floats(0, 1)


@pytest.mark.parametrize(
    ("path", "weight"),
    [
        ([0.0, 0.5], 0.0),
        ([0.6], 0.5),
        ([0.7], 1.0),
        ([1.0], 1.0),
        # up to 0.6, then down: held until the level has fallen by the hysteresis ...
        ([0.6, 0.51], 0.5),
        # ... and then follows: 0.45 + 0.1 = 0.55, a quarter of the way
        ([0.6, 0.45], 0.25),
        ([0.6, 0.4], 0.0),
        # back up: held again until the rising line is met
        ([0.6, 0.45, 0.54], 0.25),
        ([0.6, 0.45, 0.65], 0.75),
        # going up and down within the hysteresis changes nothing
        ([0.65, 0.6, 0.64, 0.58, 0.65], 0.75),
    ],
)
def test_weight_follows_the_level_with_hysteresis(path: list[float], weight: float) -> None:
    stack = 0.0
    for at in path:
        stack = next_stack_weight(stack, at, LEVELS)
    assert stack == pytest.approx(weight)


@given(previous=st.floats(0, 1), at=level)
def test_asking_twice_at_the_same_level_changes_nothing(previous: float, at: float) -> None:
    once = next_stack_weight(previous, at, LEVELS)
    assert 0 <= once <= 1
    assert next_stack_weight(once, at, LEVELS) == once


@pytest.mark.parametrize(("lower", "upper"), [(0.7, 0.5), (0.5, 0.5), (-0.1, 0.5), (0.5, 1.1)])
def test_levels_that_make_no_sense_are_refused(lower: float, upper: float) -> None:
    with pytest.raises(InputError, match=r"lower must be below upper|input should be"):
        WaterLevels(lower=lower, upper=upper)


def test_spreading_blends_into_stacking_by_the_fullest_resource_that_counts() -> None:
    requested = np.array([[2.0, 6.0, 9.0], [2.0, 6.0, 9.0], [5.0, 5.0, 5.0]])
    allocatable = np.array([[10.0, 10.0, 10.0], [10.0, 10.0, 10.0], [0.0, np.nan, 0.0]])
    assert water_level(requested, allocatable, np.array([1.0, 1.0, 0.0])) == pytest.approx(0.6)
    assert water_level(requested, allocatable, np.ones(3)) == pytest.approx(0.9)
    assert water_level(np.zeros((0, 3)), np.zeros((0, 3)), np.ones(3)) == 0
    assert water_level(requested[:, ::-1], allocatable[:, ::-1], np.ones(3)) == pytest.approx(0.9)
    assert water_level(requested * 10, allocatable, np.ones(3)) == 1
    requested, pod, allocatable = np.array([[1.0, 3.0], [7.0, 7.0]]), np.ones(2), np.full((2, 2), 10.0)
    spread, half, stack = (
        spread_or_stack_score(requested, pod, allocatable, np.ones(2), weight) for weight in (0, 0.25, 1)
    )
    np.testing.assert_allclose(spread, [70, 20])
    np.testing.assert_allclose(stack, [30, 80])
    np.testing.assert_allclose(half, [0.75 * 70 + 0.25 * 30, 0.75 * 20 + 0.25 * 80])
    requested = np.array([[1.0, 3.0], [1.0, 3.0], [1.0, 3.0]])
    allocatable = np.array([[10.0, 10.0], [10.0, np.nan], [0.0, np.inf]])
    score = spread_or_stack_score(requested, np.zeros(2), allocatable, np.array([1.0, 3.0]), 1.0)
    np.testing.assert_allclose(score, [25, 10, 50])
