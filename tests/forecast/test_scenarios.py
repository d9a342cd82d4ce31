"""Scenarios are past weeks, brought to the level of the forecast only where that is clearly more than noise."""

from __future__ import annotations

import numpy as np
import pytest

from forecast.scenarios import SCENARIO_WEIGHTS, dilate, knows_levels, scenario_weeks


def test_a_service_as_it_was_keeps_its_raw_week() -> None:
    usage = np.tile(1 + np.random.default_rng(0).random((4, 7, 48)), (1, 3, 1))
    weeks = scenario_weeks(usage, usage[:, :14])
    assert weeks.shape == (4, len(SCENARIO_WEIGHTS), 7, 48)
    np.testing.assert_allclose(weeks[:, 0], usage[:, 14:])


def test_day_zero_is_the_weekday_after_history_ends() -> None:
    usage = np.repeat(np.arange(1.0, 16.0)[None, :, None], 48, axis=2)
    weeks = scenario_weeks(usage, np.full((1, 7, 48), 12.0))
    assert weeks[0, 0].mean(axis=1).argsort().tolist() == list(range(7))


def test_a_doubled_service_is_doubled_in_every_scenario() -> None:
    usage = np.ones((1, 21, 48))
    assert scenario_weeks(usage, np.full((1, 7, 48), 2.0)) == pytest.approx(np.full((1, 1, 7, 48), 2.0), rel=0.01)


def test_a_service_whose_level_wanders_keeps_what_it_did() -> None:
    levels = np.repeat([1.0, 2.0, 1.0, 2.0], 7)
    usage = np.repeat(levels[None, :, None], 48, axis=2)
    weeks = scenario_weeks(usage, np.full((1, 7, 48), 1.5))
    assert weeks[0, 0].mean() > 1.85


def test_gaps_are_filled_from_the_forecast() -> None:
    usage = np.ones((2, 14, 48))
    usage[0, 10] = np.nan
    usage[1] = np.nan
    weeks = scenario_weeks(usage, np.ones((2, 7, 48)))
    np.testing.assert_allclose(weeks, 1.0)


def test_less_than_a_week_of_history_is_filled_from_the_forecast() -> None:
    weeks = scenario_weeks(np.full((1, 3, 48), 2.0), np.full((1, 7, 48), 2.0))
    np.testing.assert_allclose(weeks, 2.0)


def test_dilation_takes_the_highest_neighbour() -> None:
    np.testing.assert_array_equal(dilate(np.array([0.0, 3.0, 1.0, 0.0, 0.0])), [3, 3, 3, 1, 0])


def test_a_forecast_that_knew_past_levels_is_believed_where_the_level_is_restless() -> None:
    usage = np.ones((2, 21, 48)) * np.exp(0.05 * np.maximum(np.arange(21) - 7, 0))[:, None]
    forecast = np.full((2, 7, 48), usage[0, -7:].mean() * 1.4)
    weeks = scenario_weeks(usage, forecast, np.array([True, False]))
    assert weeks[0, 0].mean() == pytest.approx(forecast[0].mean())
    assert weeks[1, 0].mean() == pytest.approx(usage[1, -7:].mean())


def test_who_knows_levels() -> None:
    actual = np.array([[1.0, 1.4], [1.0, 1.0], [1.0, 1.4]])
    week_before = np.array([[0.7, 1.0], [1.0, 1.0], [0.7, 1.0]])
    forecast = np.array([[0.95, 1.4], [1.0, 1.0], [0.75, 1.1]])
    assert knows_levels(forecast, actual, week_before).tolist() == [True, False, False]
