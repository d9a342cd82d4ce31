"""Gaps in the history of predictors, against the rule for one slot as a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.arrays import Floats
from forecast.calendar import SLOTS_PER_DAY
from forecast.predictors.base import filled_days, nan_mean, nan_means


def with_gaps(seed: int, n_series: int, n_days: int, share: float) -> Floats:
    """Random usage of which a share is missing; whole days, whole slots and whole series among it."""
    rng = np.random.default_rng(seed)
    usage = rng.random((n_series, n_days, SLOTS_PER_DAY))
    usage[rng.random(usage.shape) < share] = np.nan
    usage[:, rng.random(n_days) < share] = np.nan
    usage[:, :, rng.random(SLOTS_PER_DAY) < share] = np.nan
    usage[rng.random(n_series) < share / 4] = np.nan
    usage[:, :1, :5] = np.inf
    return usage


def filled_slot(past: Floats, otherwise: float) -> list[float]:
    """past: (n_days,) of one slot. Each missing day takes the nearest earlier known one, else the nearest later one."""
    known = [day for day, value in enumerate(past) if np.isfinite(value)]
    if not known:
        return [otherwise] * len(past)
    return [float(past[max((k for k in known if k <= day), default=known[0])]) for day in range(len(past))]


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 9), st.sampled_from([0.0, 0.1, 0.5, 0.9]))
def test_gaps_are_filled_by_the_nearest_day(seed: int, n_series: int, n_days: int, share: float) -> None:
    usage = with_gaps(seed, n_series, n_days, share)
    filled, mean = filled_days(usage), nan_mean(usage)
    for series in range(n_series):
        for slot in range(SLOTS_PER_DAY):
            expected = filled_slot(usage[series, :, slot], mean[series, slot])
            np.testing.assert_array_equal(filled[series, :, slot], expected)


def test_days_that_are_all_there_are_copied() -> None:
    usage = np.random.default_rng(0).random((2, 3, SLOTS_PER_DAY))
    filled = filled_days(usage)
    filled[:] = 0.0
    assert usage.all()


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_several_means_are_the_weighted_means_of_the_known_days(share: float, dtype: type[np.floating]) -> None:
    usage = with_gaps(7, 5, 9, share).astype(dtype)
    weights = np.random.default_rng(1).random((3, 9))
    found = nan_means(usage, weights)
    assert found.dtype == np.float64
    for series in range(5):
        known = np.isfinite(usage[series])
        for index, weight in enumerate(weights):
            mass = known * weight[:, None]
            values = np.where(known, usage[series], 0.0)
            overall = (mass * values).sum() / mass.sum() if mass.any() else 0.0
            for slot in range(SLOTS_PER_DAY):
                of_slot = mass[:, slot].sum()
                expected = (mass[:, slot] * values[:, slot]).sum() / of_slot if of_slot else overall
                assert found[series, index, slot] == pytest.approx(expected, rel=1e-6)
