"""Challengers of the peak forecast find what is to be found in series that are easy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.challengers.known_series import KnownSeries
from benchmarks.challengers.pinball_network import pinball_network
from benchmarks.challengers.ridge_on_lags import error_quantiles, ridge_on_lags
from forecast.arrays import Floats
from forecast.calendar import Days


def days(first: int, count: int) -> Days:
    weekday = (first + np.arange(count)) % 7
    return Days(weekday, np.maximum(weekday - 4, 0))


@pytest.mark.parametrize("challenger", [pinball_network, ridge_on_lags])
def test_noise_around_a_level_is_forecast_by_its_quantiles(challenger: Callable[[KnownSeries], Floats]) -> None:
    rng = np.random.default_rng(0)
    level = np.exp(rng.normal(0, 2, 60))
    usage = level[:, None, None] * np.exp(rng.normal(0, 0.2, (60, 40, 1))) * np.ones(48)
    known = KnownSeries(usage, np.zeros(60, dtype=np.int64), days(0, 40), days(40, 1))
    log_ratio = np.log(challenger(known) / level[:, None])
    assert np.median(log_ratio[:, 0]) == pytest.approx(0.0, abs=0.06)
    assert np.median(log_ratio[:, 1]) == pytest.approx(1.645 * 0.2, abs=0.1)


def test_a_wild_series_gets_wider_error_quantiles_than_a_calm_one() -> None:
    errors = np.random.default_rng(0).normal(0, 1, (2, 60)) * np.array([[0.1], [1.0]])
    low, high = error_quantiles(errors)[:, 1]
    assert high > 3 * low > 0
