from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import norm

from forecast.half_hours.pooled_model import learn, quantiles_after
from forecast.model import HALF_HOUR_LEVELS
from tests.forecast.half_hours.series import alike, days_from_monday, noisy

N_SERIES, N_DAYS, NOISE = 60, 29, 0.2


NEVER_USED, NOTHING_RECENT, ONE_RECENT_DAY, YOUNG = 3, 4, 5, 0


@cache
def tomorrow(n_days: int = N_DAYS) -> np.ndarray:
    """Quantiles of the day after the first `n_days` - 1, (n_series, 48, n_levels)."""
    return learned_anew(n_days)


def learned_anew(n_days: int) -> np.ndarray:
    usage, days = noisy(N_SERIES, n_days, noise=NOISE), days_from_monday(n_days)
    found = quantiles_after(usage[:, :-1], days.take(slice(-1)), days.take(slice(n_days - 1, None)), alike(N_SERIES))
    assert found is not None
    return found


@cache
def with_gaps() -> np.ndarray:
    """Quantiles after a history of which the series above and one morning of all are not measured, or not used."""
    n_days = N_DAYS + 7
    usage, days = noisy(N_SERIES, n_days), days_from_monday(n_days)
    usage[NEVER_USED] = 0.0
    usage[NOTHING_RECENT, -28:], usage[ONE_RECENT_DAY, -27:] = np.nan, np.nan
    usage[:, 27, 10:20] = np.nan
    usage[YOUNG, :19] = np.nan
    found = quantiles_after(usage, days, days_from_monday(n_days + 1).take(slice(n_days, None)), alike(N_SERIES))
    assert found is not None
    return found


def test_quantiles_cover_as_they_say() -> None:
    came, quantiles = noisy(N_SERIES, N_DAYS, noise=NOISE)[:, -1], tomorrow()
    below = (came[..., None] <= quantiles).mean(axis=(0, 1))
    np.testing.assert_allclose(below, HALF_HOUR_LEVELS, atol=0.04)


def test_quantiles_of_small_and_large_series_are_those_of_the_noise() -> None:
    quantiles = tomorrow()
    middle = quantiles[..., HALF_HOUR_LEVELS.index(0.5)]
    width = np.log(quantiles[..., HALF_HOUR_LEVELS.index(0.9)] / middle) / norm.ppf(0.9)
    by_size = np.median(width, axis=1)
    assert 0.7 * NOISE < by_size[:10].mean() < 1.4 * NOISE
    assert 0.7 * NOISE < by_size[-10:].mean() < 1.4 * NOISE


def test_a_weekend_is_forecast_as_one() -> None:
    saturday = 26
    assert days_from_monday(saturday + 1).weekday[saturday] == 5
    middle = tomorrow(saturday + 1)[..., HALF_HOUR_LEVELS.index(0.5)]
    workdays = noisy(N_SERIES, saturday, noise=NOISE)[:, 14:19].mean(axis=1)
    assert 0.4 < np.median(middle / workdays) < 0.65


def test_quantiles_ascend_and_nothing_is_below_zero() -> None:
    quantiles = tomorrow()
    assert (np.diff(quantiles, axis=-1) >= 0).all() and (quantiles >= 0).all() and np.isfinite(quantiles).all()


def test_what_was_never_used_stays_unused() -> None:
    assert (with_gaps()[NEVER_USED] == 0).all() and (with_gaps()[NEVER_USED - 1] > 0).any()


def test_a_series_without_a_recent_past_is_not_forecast() -> None:
    assert np.isnan(with_gaps()[NOTHING_RECENT]).all() and (with_gaps()[ONE_RECENT_DAY] > 0).any()


def test_gaps_are_no_usage_that_was_measured() -> None:
    assert np.isfinite(np.delete(with_gaps(), NOTHING_RECENT, axis=0)).all()
    assert (with_gaps()[YOUNG, :, -1] > 0).all()


@pytest.mark.parametrize(("n_days", "is_enough"), [(6, False), (7, True), (10, True)])
def test_a_week_is_enough_to_learn_from(n_days: int, is_enough: bool) -> None:
    days = days_from_monday(n_days + 1)
    model = learn(noisy(N_SERIES, n_days), days.take(slice(n_days)), days.take(slice(n_days, None)), alike(N_SERIES))
    assert (model is not None) == is_enough


def test_a_few_series_of_a_week_are_too_little_to_learn_from() -> None:
    days = days_from_monday(9)
    assert learn(noisy(2, 8), days.take(slice(8)), days.take(slice(8, None)), alike(2)) is None


def test_learning_twice_gives_the_same() -> None:
    np.testing.assert_array_equal(tomorrow(), learned_anew(N_DAYS))
