"""Replica counts: who is autoscaled, and what is expected of the others."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np

from forecast.arrays import Floats
from forecast.calendar import Calendar
from forecast.replicas import forecast_replicas

MONDAY = date(2026, 5, 4)
CALENDAR = Calendar()
PAST = CALENDAR.describe([MONDAY + timedelta(days=i) for i in range(21)])
COMING = CALENDAR.describe([MONDAY + timedelta(days=21 + i) for i in range(14)])


def counts(per_day: Floats) -> Floats:
    """One service whose every day looks like `per_day` (48,)."""
    return np.tile(per_day, (1, 21, 1)).astype(float)


def evening(low: float, high: float) -> Floats:
    return np.where(np.arange(48) >= 34, high, low)


def test_a_count_that_follows_the_evening_is_autoscaled_and_forecast_as_such() -> None:
    forecast = forecast_replicas(counts(evening(4, 12)), PAST, COMING)
    assert forecast.autoscaled.tolist() == [True]
    assert forecast.dated[0, 0, 10] == 4 and forecast.dated[0, 0, 40] == 12


def test_a_rollout_that_surges_for_an_hour_is_not_autoscaling() -> None:
    day = np.full(48, 10.0)
    day[20:22] = 13
    assert not forecast_replicas(counts(day), PAST, COMING).autoscaled[0]


def test_a_changed_replica_count_is_expected_to_stay() -> None:
    replicas = counts(np.full(48, 6.0))
    replicas[0, -1, 24:] = 12
    forecast = forecast_replicas(replicas, PAST, COMING)
    assert not forecast.autoscaled[0] and forecast.reference[0] == 12
    assert (forecast.dated[0] == 12).all()


def test_a_gap_in_the_data_does_not_change_the_count() -> None:
    replicas = counts(np.full(48, 6.0))
    replicas[0, -1, 40:] = np.nan
    assert forecast_replicas(replicas, PAST, COMING).reference[0] == 6


def test_weekends_are_learned_from_weekends() -> None:
    replicas = np.where((PAST.day_type > 0)[None, :, None], evening(2, 4), evening(4, 12))
    forecast = forecast_replicas(replicas, PAST, COMING)
    saturday = int(np.flatnonzero(COMING.weekday == 5)[0])
    assert forecast.dated[0, saturday, 40] == 4 and forecast.dated[0, 0, 40] == 12


def test_a_service_never_seen_has_no_pods() -> None:
    forecast = forecast_replicas(np.full((1, 21, 48), np.nan), PAST, COMING)
    assert forecast.reference[0] == 0 and (forecast.dated == 0).all()
