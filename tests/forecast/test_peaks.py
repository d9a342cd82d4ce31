from __future__ import annotations

import numpy as np
import pytest

from forecast.arrays import Floats, Ints
from forecast.calendar import Days
from forecast.losses import coverage, pinball_loss
from forecast.peak_features import EXPERTS, FEATURES, daily_statistics, describe
from forecast.peaks import PeakForecaster


def some_days(n_days: int, first_weekday: int = 0) -> Days:
    weekday = (np.arange(n_days) + first_weekday) % 7
    return Days(weekday, np.maximum(weekday - 4, 0))


def noisy(n_series: int, n_days: int, seed: int = 0) -> tuple[Floats, Ints]:
    rng = np.random.default_rng(seed)
    shape = 0.2 + np.exp(-(((np.arange(48) - 40) / 6) ** 2))
    level = np.exp(rng.normal(0, 3, n_series))
    daily = np.exp(rng.normal(0, 0.4, (n_series, n_days)))
    return level[:, None, None] * daily[:, :, None] * shape, np.arange(n_series) % 2


def forecast(usage: Floats, resource: Ints, n_horizon: int = 14) -> Floats:
    n_days = usage.shape[1]
    fitted = PeakForecaster(iterations=30).fit(usage, resource, some_days(n_days))
    return fitted.predict(some_days(n_horizon, n_days % 7)).peaks


def test_peaks_are_ordered_covered_and_sharper_than_the_last_week() -> None:
    usage, resource = noisy(300, 29)
    actual = usage[:, -1].max(axis=1)
    peaks = forecast(usage[:, :-1], resource, 1)[:, 0]
    assert (peaks[:, 0] <= peaks[:, 1]).all()
    assert (peaks > 0).all()
    assert 0.91 <= coverage(actual, peaks[:, 1]) <= 0.99
    scale = np.quantile(usage.max(axis=2), 0.9, axis=1)
    ours = pinball_loss(actual / scale, peaks[:, 1] / scale, 0.95).mean()
    week = usage[:, -8:-1].max(axis=(1, 2))
    assert ours < pinball_loss(actual / scale, week / scale, 0.95).mean()


def test_the_future_is_not_looked_at() -> None:
    usage, resource = noisy(40, 30)
    changed = usage.copy()
    changed[:, 25:] *= 50
    np.testing.assert_array_equal(forecast(usage[:, :25], resource), forecast(changed[:, :25], resource))
    statistics = [daily_statistics(u, resource, some_days(30)) for u in (usage, changed)]
    rows = [describe(s, np.arange(40), 25, some_days(1, 4), 1) for s in statistics]
    np.testing.assert_array_equal(rows[0].features, rows[1].features)
    np.testing.assert_array_equal(rows[0].experts, rows[1].experts)


def test_names_match_columns() -> None:
    usage, resource = noisy(3, 10)
    rows = describe(daily_statistics(usage, resource, some_days(10)), np.arange(3), 10, some_days(1, 3), 1)
    assert rows.experts.shape == (3, len(EXPERTS), 2)
    assert rows.features.shape == (3, len(FEATURES))
    assert np.isfinite(rows.features).all()


def test_the_same_input_gives_the_same_output_and_stays_as_it_was() -> None:
    usage, resource = noisy(40, 20)
    before = usage.copy()
    np.testing.assert_array_equal(forecast(usage, resource), forecast(usage, resource))
    np.testing.assert_array_equal(usage, before)


def test_the_unit_of_a_cluster_does_not_matter() -> None:
    usage, resource = noisy(60, 20)
    np.testing.assert_allclose(forecast(1024.0 * usage, resource), 1024.0 * forecast(usage, resource), rtol=1e-6)


@pytest.mark.parametrize("n_days", [1, 2, 4, 6, 8])
def test_short_histories_give_plain_quantiles(n_days: int) -> None:
    usage, resource = noisy(5, n_days)
    peaks = forecast(usage, resource)
    assert np.isfinite(peaks).all()
    highest = usage.max(axis=(1, 2))
    assert (peaks[:, 0, 1] <= 2 * highest).all()
    assert (peaks[:, 0, 1] >= 0.3 * highest).all()


def test_silent_and_unmeasured_series_get_zeros_and_gaps_are_bridged() -> None:
    usage, resource = noisy(30, 20)
    usage[0] = 0.0
    usage[1] = np.nan
    usage[2, -3:] = np.nan
    peaks = forecast(usage, resource)
    assert (peaks[:2] == 0).all()
    assert np.isfinite(peaks).all()
    assert (peaks[2] > 0).all()


def test_one_freak_day_does_not_rule_the_next() -> None:
    usage, resource = noisy(30, 28)
    usage[0, -2] *= 10_000
    peaks = forecast(usage, resource)
    assert peaks[0, 0, 1] < 20 * np.median(usage[0].max(axis=1))


def test_a_level_shift_is_followed_within_days() -> None:
    usage, resource = noisy(30, 28)
    usage[0, -3:] *= 4
    before = np.median(usage[0, :-3].max(axis=1))
    assert forecast(usage, resource)[0, 0, 0] > 2 * before


def test_components_are_reported_for_every_series() -> None:
    usage, resource = noisy(20, 20)
    result = PeakForecaster().fit(usage, resource, some_days(20)).predict(some_days(2, 6))
    assert {"blend", "boosted_trees"} <= set(result.components)
    for values in result.components.values():
        assert values.shape == result.peaks.shape
        assert np.isfinite(values).all()


def test_no_series_is_no_error() -> None:
    assert forecast(np.zeros((0, 10, 48)), np.zeros(0, dtype=np.int64)).shape == (0, 14, 2)
