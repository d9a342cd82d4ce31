from __future__ import annotations

import numpy as np
import pytest

from base.arrays import Floats, Ints
from forecast.calendar import Days
from forecast.peak_experts import EXPERTS, KnownDays, expert_forecasts, known_days
from forecast.peak_statistics import DailyStatistics, daily_statistics, smoothed_peaks
from forecast.peak_trees import FEATURES, RELATIVE_FEATURES, describe, relative_features
from forecast.peaks import PeakForecaster
from forecast.quantiles import coverage, pinball_loss


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
    described = [before_day(s, 25) for s in statistics]
    np.testing.assert_array_equal(described[0][1], described[1][1])
    np.testing.assert_array_equal(described[0][2], described[1][2])


def before_day(statistics: DailyStatistics, origin: int) -> tuple[KnownDays, Floats, Floats]:
    """What is known before a day, its experts and its features."""
    known = known_days(statistics, np.arange(len(statistics.peak)), origin)
    target = some_days(1, origin % 7)
    experts = expert_forecasts(statistics, known, target, 1)
    return known, experts, describe(statistics, known, experts, target, 1)


def test_names_match_columns() -> None:
    usage, resource = noisy(3, 10)
    known, experts, features = before_day(daily_statistics(usage, resource, some_days(10)), 10)
    assert experts.shape == (3, len(EXPERTS), 2)
    assert features.shape == (3, len(FEATURES))
    assert np.isfinite(features).all()
    relative = relative_features(experts, experts[:, 0, 0], known.unit, np.ones(3))
    assert relative.shape == (3, len(RELATIVE_FEATURES))
    np.testing.assert_allclose(relative[:, RELATIVE_FEATURES.index("last_day_mid_to_blend")], 0.0, atol=1e-12)


def test_the_weekly_rules_know_the_weekday() -> None:
    rng = np.random.default_rng(0)
    weekend = np.where(np.arange(42) % 7 >= 5, 0.3, 1.0)
    usage = (weekend * rng.uniform(0.98, 1.02, (20, 42)))[:, :, None] * np.ones(48)
    statistics = daily_statistics(usage, np.zeros(20, dtype=np.int64), some_days(42))
    saturday, monday = (before_day(statistics, origin)[1] for origin in (40, 35))
    for name in ("weekly_level", "exponential_smoothing"):  # the days before were at 1.0 and 0.3
        assert (saturday[:, EXPERTS.index(name), 0] < 0.4).all(), name
        assert (monday[:, EXPERTS.index(name), 0] > 0.75).all(), name


def test_smoothing_forecasts_a_week_that_repeats_and_bridges_gaps() -> None:
    week = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 1.0])
    peak = np.tile(week, 4)[None]
    np.testing.assert_allclose(smoothed_peaks(peak).forecast[0, 7:, 0], np.tile(week, 4)[: 28 - 7 + 1], atol=1e-9)
    gap = peak.copy()
    gap[0, 20:22] = np.nan
    np.testing.assert_allclose(smoothed_peaks(gap).forecast[0, 22:28, 0], peak[0, 22:28], atol=1e-9)
    assert (smoothed_peaks(np.full((2, 9), np.nan)).forecast == 0).all()


def test_smoothing_knows_the_weekday_of_later_days() -> None:
    week = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 1.0])
    smoothed = smoothed_peaks(np.tile(week, 4)[None])
    for lead in range(1, 15):
        np.testing.assert_allclose(smoothed.ahead(np.zeros(1, dtype=int), 26, lead)[0, 0], week[(25 + lead) % 7])
    young = smoothed_peaks(np.array([[2.0, 4.0]]))
    assert young.ahead(np.zeros(1, dtype=int), 2, 14).tolist() == [[3.0, 3.0]]


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


def test_no_series_is_no_error() -> None:
    assert forecast(np.zeros((0, 10, 48)), np.zeros(0, dtype=np.int64)).shape == (0, 14, 2)
