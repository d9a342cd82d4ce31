from __future__ import annotations

import numpy as np

from base.arrays import Floats
from forecast.calendar import Days
from forecast.predictors import discover
from forecast.selection import select_predictors

SHAPE = 0.2 + np.exp(-(((np.arange(48) - 40) / 6) ** 2))


def some_days(n_days: int, first_weekday: int = 0) -> Days:
    weekday = (np.arange(n_days) + first_weekday) % 7
    return Days(weekday, np.maximum(weekday - 4, 0))


def usage_of(daily_level: Floats, seed: int = 0) -> Floats:
    """(n_series, n_days) levels -> (n_series, n_days, 48) with a little noise."""
    noise = np.exp(np.random.default_rng(seed).normal(0, 0.05, (*daily_level.shape, 48)))
    return daily_level[:, :, None] * SHAPE * noise


def test_weights_are_a_blend_and_forecasts_have_the_shape_of_the_horizon() -> None:
    usage = usage_of(np.ones((8, 21)))
    group = np.arange(8) % 2
    selection = select_predictors(usage, some_days(21), group=group)
    assert selection.names == tuple(discover())
    np.testing.assert_allclose(selection.weights.sum(axis=1), 1.0)
    assert (selection.weights >= 0).all()
    curves = selection.predict(usage, some_days(21), some_days(14))
    assert curves.shape == (8, 14, 48)
    np.testing.assert_allclose(curves.mean(), usage.mean(), rtol=0.1)


def test_known_series_keep_their_weights_and_a_share_is_looked_at_again() -> None:
    usage = usage_of(np.ones((70, 21)))
    group = np.zeros(70, dtype=np.int64)
    first = select_predictors(usage, some_days(21), group=group)
    assert first.selected.all()
    previous = first.weights.copy()
    previous[5] = np.nan  # a new service
    usage[9, -7:] *= 4  # one that has moved
    second = select_predictors(usage, some_days(21), group=group, previous=previous)
    assert second.selected[5]
    assert second.selected[9]
    assert 10 <= second.selected.sum() <= 12
    kept = ~second.selected
    np.testing.assert_allclose(second.weights[kept], first.weights[kept])
    cheap = [name for name, kind in discover().items() if not kind.expensive]
    assert all(second.evaluated[name] == second.selected.sum() for name in cheap)


def test_every_series_has_its_turn_within_a_week_of_nights() -> None:
    usage, group = usage_of(np.ones((20, 14))), np.zeros(20, dtype=np.int64)
    previous = select_predictors(usage, some_days(14), group=group).weights
    identity = np.random.default_rng(0).permutation(1000)[:20].astype(np.int64)
    looked_at = np.zeros(20, dtype=np.int64)
    for night in range(7):
        looked_at += select_predictors(
            usage, some_days(14), group=group, previous=previous, identity=identity, night=night
        ).selected
    assert (looked_at == 1).all()


def test_expensive_predictors_see_a_few_representatives_only() -> None:
    selection = select_predictors(usage_of(np.ones((40, 15))), some_days(15), group=np.zeros(40, dtype=np.int64))
    expensive = [name for name, kind in discover().items() if kind.expensive]
    assert expensive
    assert all(0 < selection.evaluated[name] < 40 for name in expensive)


def test_previous_weights_of_other_predictors_are_not_used() -> None:
    usage = usage_of(np.ones((4, 15)))
    selection = select_predictors(
        usage, some_days(15), group=np.zeros(4, dtype=np.int64), previous=np.full((4, 2), 0.5)
    )
    assert selection.selected.all()


def test_two_days_of_history_give_equal_weights_and_a_forecast() -> None:
    usage = usage_of(np.ones((3, 2)))
    selection = select_predictors(usage, some_days(2), group=np.zeros(3, dtype=np.int64))
    curves = selection.predict(usage, some_days(2), some_days(3))
    np.testing.assert_allclose(curves.mean(axis=(1, 2)), usage.mean(axis=(1, 2)), rtol=0.2)


def test_empty_and_silent_series_are_served() -> None:
    usage = usage_of(np.ones((5, 21)))
    usage[0], usage[1] = 0.0, np.nan
    selection = select_predictors(usage, some_days(21), group=np.zeros(5, dtype=np.int64))
    curves = selection.predict(usage, some_days(21), some_days(7))
    assert np.isfinite(curves).all()
    assert (curves[:2] == 0).all()


def test_no_series_is_no_error() -> None:
    selection = select_predictors(np.zeros((0, 10, 48)), some_days(10), group=np.zeros(0, dtype=np.int64))
    assert selection.predict(np.zeros((0, 10, 48)), some_days(10), some_days(3)).shape == (0, 3, 48)
