from __future__ import annotations

import numpy as np
from scipy.stats import norm

from forecast.half_hours.tomorrow import expected_of, normal_quantiles, quantiles_of_tomorrow
from forecast.model import HALF_HOUR_LEVELS

MIDDLE = HALF_HOUR_LEVELS.index(0.5)


def published(peaks: tuple[float, float], *, effect: float = 1.0) -> np.ndarray:
    """Of one series whose half hours are about 10, with a standard deviation of 1."""
    curve = np.full((1, 48), 10.0)
    learnt = normal_quantiles(curve, np.ones((1, 48)))
    return quantiles_of_tomorrow(
        learnt, ordinary=curve, expected=effect * curve, variance=np.ones((1, 48)), peaks=np.array([peaks])
    )


def test_the_mean_of_a_normal_distribution_is_its_middle() -> None:
    quantiles = normal_quantiles(np.full((2, 48), 10.0), np.full((2, 48), 4.0))
    np.testing.assert_allclose(expected_of(quantiles), 10.0)


def test_the_mean_of_a_skewed_distribution_lies_above_its_median() -> None:
    quantiles = np.exp(0.5 * norm.ppf(HALF_HOUR_LEVELS))[None, None]
    np.testing.assert_allclose(expected_of(quantiles), np.exp(0.5**2 / 2), rtol=0.02)


def test_no_half_hour_contradicts_the_peak_of_the_day() -> None:
    quantiles = published((9.5, 11.0))
    for level, highest in zip(HALF_HOUR_LEVELS, quantiles.max(axis=(0, 1)), strict=True):
        assert highest <= (9.5 if level <= 0.5 else 11.0 if level <= 0.95 else np.inf)
    assert (np.diff(quantiles, axis=-1) >= 0).all()


def test_high_peaks_leave_half_hours_as_they_are() -> None:
    np.testing.assert_allclose(published((12.0, 20.0))[0, 0, MIDDLE], 10.0)


def test_unknown_peaks_limit_nothing() -> None:
    np.testing.assert_allclose(published((0.0, 0.0))[0, 0, MIDDLE], 10.0)


def test_an_event_multiplies_all_quantiles() -> None:
    np.testing.assert_allclose(published((99.0, 99.0), effect=2.0), 2 * published((99.0, 99.0)))


def test_errors_of_the_past_speak_where_nothing_was_learnt() -> None:
    curve = np.full((1, 48), 10.0)
    found = quantiles_of_tomorrow(
        None, ordinary=curve, expected=curve, variance=np.ones((1, 48)), peaks=np.array([[99.0, 99.0]])
    )
    np.testing.assert_allclose(found[0, 0], 10 + norm.ppf(HALF_HOUR_LEVELS))


def test_errors_of_the_past_speak_for_a_series_without_a_recent_past() -> None:
    curves, variance, peaks = np.full((2, 48), 10.0), np.ones((2, 48)), np.full((2, 2), 99.0)
    learnt = np.stack([normal_quantiles(curves[0], 4 * variance[0]), np.full((48, len(HALF_HOUR_LEVELS)), np.nan)])
    found = quantiles_of_tomorrow(learnt, ordinary=curves, expected=curves, variance=variance, peaks=peaks)
    np.testing.assert_allclose(found[0], learnt[0])
    np.testing.assert_allclose(found[1, 0], 10 + norm.ppf(HALF_HOUR_LEVELS))
