"""The fixed rules, on days small enough to check by hand."""

from __future__ import annotations

import numpy as np
import pytest

from base.arrays import Floats
from forecast.baselines import BASELINES

PEAKS = np.array([[4.0, 9.0, 2.0, 8.0, 5.0, 1.0, 7.0, 3.0, 6.0, 10.0]])  # ten days, oldest first


def flat_days(peaks: Floats) -> Floats:
    return np.repeat(peaks[:, :, None], 48, axis=2)


@pytest.mark.parametrize(
    ("name", "q50", "q95"),
    [
        ("yesterday", 10.0, 10.0),
        ("same_day_last_week", 8.0, 10.0),
        ("seven_days", 6.0, 10.0),
        ("quantiles_28_days", 5.5, 9.55),
        ("n_sigma", 10.0, 10.0),
        ("rc_like", 10.0, 10.0),
        # weights 2^-age/2 from the newest: 10 has 0.293/0.969 of the mass, 9 (8 days old) little
        ("decayed_quantiles_14_days", 6.0, 10.0),
    ],
)
def test_by_hand(name: str, q50: float, q95: float) -> None:
    mid, high = BASELINES[name](PEAKS, flat_days(PEAKS))
    assert mid[0] == pytest.approx(q50)
    assert high[0] == pytest.approx(q95)


def test_the_issue_names_eight() -> None:
    assert set(BASELINES) == {
        "yesterday",
        "same_day_last_week",
        "seven_days",
        "quantiles_28_days",
        "n_sigma",
        "rc_like",
        "decayed_quantiles_14_days",
        "exponential_smoothing",
    }


def test_n_sigma_looks_at_the_last_days_samples() -> None:
    usage = np.zeros((1, 3, 48))
    usage[0, -1, :24], usage[0, -1, 24:] = 1.0, 3.0
    mid, high = BASELINES["n_sigma"](usage.max(axis=2), usage)
    assert mid[0] == pytest.approx(2.0 + 2 * 1.0)
    assert high[0] == pytest.approx(2.0 + 5 * 1.0)


def test_exponential_smoothing_learns_a_weekly_season() -> None:
    peaks = np.tile([5.0, 5.0, 5.0, 5.0, 9.0, 1.0, 1.0], (1, 4))
    peaks = np.concatenate([peaks, [[5.0, 5.0, 5.0, 5.0]]], axis=1)
    mid, high = BASELINES["exponential_smoothing"](peaks, flat_days(peaks))
    assert mid[0] == pytest.approx(9.0)
    assert high[0] == pytest.approx(9.0)


@pytest.mark.parametrize("name", BASELINES)
def test_rules_are_pure_scale_and_bridge_gaps(name: str) -> None:
    rng = np.random.default_rng(0)
    usage = rng.gamma(2.0, size=(5, 20, 48))
    usage[0, 3] = np.nan
    peaks = np.where(np.isfinite(usage).any(axis=2), np.nan_to_num(usage).max(axis=2), np.nan)
    before = usage.copy(), peaks.copy()
    mid, high = BASELINES[name](peaks, usage)
    np.testing.assert_array_equal(usage, before[0])
    np.testing.assert_array_equal(peaks, before[1])
    assert mid.shape == high.shape == (5,)
    assert np.isfinite(mid).all()
    assert (high >= mid).all()
    scaled_mid, scaled_high = BASELINES[name](7 * peaks, 7 * usage)
    np.testing.assert_allclose(scaled_mid, 7 * mid)
    np.testing.assert_allclose(scaled_high, 7 * high)


@pytest.mark.parametrize("name", BASELINES)
def test_one_day_of_history_is_no_error(name: str) -> None:
    mid, high = BASELINES[name](np.array([[3.0]]), np.full((1, 1, 48), 3.0))
    assert mid.shape == high.shape == (1,)
