"""A release that changed the level of a service is found, dated and made good; nothing else is taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from base.arrays import Floats
from forecast.change_points import LevelChanges, level_changes
from forecast.fit import fit
from forecast.resources import CPU, MEMORY
from tests.synthetic import evening_shape, scaled, synthetic_history

DAYS = 28


def series(n: int = 200, noise: float = 0.05, seed: int = 0) -> Floats:
    """Evening peaks with quieter weekends and noise of days and half hours: (n, 28, 48)."""
    rng = np.random.default_rng(seed)
    weekend = np.where(np.arange(DAYS) % 7 >= 5, 0.7, 1.0)
    of_days = np.exp(noise * rng.normal(size=(n, DAYS, 1)))
    return weekend[:, None] * evening_shape() * of_days * np.exp(noise * rng.normal(size=(n, DAYS, 48)))


def changes(usage: Floats) -> LevelChanges:
    return level_changes(usage, np.arange(usage.shape[1]) % 7, np.ones(len(usage), dtype=bool))


def by_day(factor: Floats) -> LevelChanges:
    """Of 20 services whose days carry these factors, (28,)."""
    return changes(series(20) * factor[:, None])


@pytest.mark.parametrize("load", [0.5, 1.8, 3.0])
@pytest.mark.parametrize("days_ago", [3, 4.25, 7.5, 9])
def test_a_lasting_change_is_found_with_its_hour(load: float, days_ago: float) -> None:
    usage = series(20)
    moment = int((DAYS - days_ago) * 48)
    usage.reshape(20, -1)[:, moment:] *= load
    found = changes(usage)
    assert (found.step != 0).mean() >= 0.9
    assert np.abs(found.slot[found.step != 0] - moment).max() <= 6
    believed = days_ago / (days_ago + 0.5)
    assert np.median(found.step[found.step != 0]) == pytest.approx(believed * np.log(load), rel=0.15)


@pytest.mark.parametrize("noise", [0.05, 0.15, 0.4])
def test_noise_is_no_change(noise: float) -> None:
    assert (changes(series(400, noise)).step != 0).mean() <= 0.01


@pytest.mark.parametrize(
    "factor",
    [
        1.05 ** np.arange(DAYS),
        np.where(np.arange(DAYS) == DAYS - 4, 3.0, 1.0),
        np.where(np.arange(DAYS) >= DAYS - 1, 3.0, 1.0),
        np.where((np.arange(DAYS) >= DAYS - 8) & (np.arange(DAYS) < DAYS - 2), 3.0, 1.0),
        np.where(np.arange(DAYS) >= DAYS - 5, 1.15, 1.0),
        np.where(np.arange(DAYS) >= DAYS - 5, 40.0, 1.0),
    ],
    ids=["growth", "one day", "since yesterday", "over again", "small", "forty times"],
)
def test_what_is_no_lasting_change_is_left_alone(factor: Floats) -> None:
    assert not by_day(factor).any


def test_a_part_of_the_day_alone_is_no_change_of_the_level() -> None:
    usage = series(20)
    usage[:, DAYS - 5 :, 36:44] *= 3.0
    assert not changes(usage).any


def test_gaps_short_histories_and_idle_series_are_no_change() -> None:
    usage = series(4)
    usage[0] = np.nan
    usage[1] = 0.0
    usage[2, DAYS - 6 :] = np.nan
    assert not changes(usage).any
    assert not changes(series(4)[:, :16]).any


def test_memory_is_left_out() -> None:
    usage = series(2) * np.where(np.arange(DAYS) >= DAYS - 5, 2.0, 1.0)[:, None]
    found = level_changes(usage, np.arange(DAYS) % 7, np.array([True, False]))
    assert found.step[0] != 0
    assert (found.step[1], found.slot[1]) == (0, 0)


def test_only_what_lies_before_is_brought_to_the_new_level() -> None:
    found = LevelChanges(np.array([60, 0]), np.array([np.log(2.0), 0.0]))
    factor = found.factor(3)
    assert factor.shape == (2, 3, 48)
    assert factor[0].ravel()[:60] == pytest.approx(2.0)
    assert (factor[0].ravel()[60:] == 1.0).all()
    assert (factor[1] == 1.0).all()
    np.testing.assert_array_equal(found.factor(3, 1), factor[:, 1:])
    usage = np.random.default_rng(0).random((2, 3, 48))
    at_todays_level = usage * factor
    found.bring_to_today(usage)
    np.testing.assert_allclose(usage, at_todays_level)


def test_curves_and_last_week_follow_a_release_of_four_days_ago() -> None:
    history = synthetic_history(noise=0.02)
    model = fit(scaled(history, 2, np.where(np.arange(DAYS) >= DAYS - 4, 2.0, 1.0)))
    before = fit(history)
    week = slice(0, 7)
    ratio = model.usage_dated[2, CPU, week] / before.usage_dated[2, CPU, week]
    assert ratio.mean() == pytest.approx(2.0, rel=0.08)
    scenario = (model.usage_dated[2, CPU, week] + model.scenario_deviation[2, CPU, 0]).mean(axis=1)
    usual = (before.usage_dated[2, CPU, week] + before.scenario_deviation[2, CPU, 0]).mean(axis=1)
    assert scenario / usual == pytest.approx(2.0, rel=0.15)
    assert model.usage_dated[1, MEMORY] == pytest.approx(before.usage_dated[1, MEMORY], rel=0.05)
