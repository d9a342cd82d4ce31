"""Replica counts: who is autoscaled, and what is expected of the others."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np

from base.arrays import Floats
from forecast.calendar import Calendar, Days
from forecast.replica_forecast import ReplicaForecast, forecast_replicas
from forecast.run_forecast import RunForecast

MONDAY = date(2026, 5, 4)
CALENDAR = Calendar()
PAST = CALENDAR.describe([MONDAY + timedelta(days=i) for i in range(21)])
COMING = CALENDAR.describe([MONDAY + timedelta(days=21 + i) for i in range(14)])


def forecast(replicas: Floats, days: Days = PAST, horizon: Days = COMING) -> ReplicaForecast:
    """The forecast for services of which none is a Job owner."""
    nothing = np.zeros(len(replicas))
    none = nothing.astype(bool)
    runs = RunForecast(none, nothing, nothing.astype(int), nothing, nothing, none, nothing.astype(int))
    return forecast_replicas(replicas, days, horizon, runs)


def counts(per_day: Floats) -> Floats:
    """One service whose every day looks like `per_day` (48,)."""
    return np.tile(per_day, (1, 21, 1)).astype(float)


def evening(low: float, high: float) -> Floats:
    return np.where(np.arange(48) >= 34, high, low)


def test_a_count_that_follows_the_evening_is_autoscaled_and_forecast_as_such() -> None:
    found = forecast(counts(evening(4, 12)))
    assert found.autoscaled.tolist() == [True]
    assert found.dated[0, 0, 10] == 4 and found.dated[0, 0, 40] == 12


def test_a_rollout_that_surges_for_an_hour_is_not_autoscaling() -> None:
    day = np.full(48, 10.0)
    day[20:22] = 13
    assert not forecast(counts(day)).autoscaled[0]


def test_a_changed_replica_count_is_expected_to_stay() -> None:
    replicas = counts(np.full(48, 6.0))
    replicas[0, -1, 24:] = 12
    found = forecast(replicas)
    assert not found.autoscaled[0] and found.reference[0] == 12
    assert (found.dated[0] == 12).all()


def test_a_gap_in_the_data_does_not_change_the_count() -> None:
    replicas = counts(np.full(48, 6.0))
    replicas[0, -1, 40:] = np.nan
    assert forecast(replicas).reference[0] == 6


def test_weekends_are_learned_from_weekends() -> None:
    replicas = np.where((PAST.day_type > 0)[None, :, None], evening(2, 4), evening(4, 12))
    found = forecast(replicas)
    saturday = int(np.flatnonzero(COMING.weekday == 5)[0])
    assert found.dated[0, saturday, 40] == 4 and found.dated[0, 0, 40] == 12


def test_a_service_never_seen_has_no_pods() -> None:
    found = forecast(np.full((1, 21, 48), np.nan))
    assert found.reference[0] == 0 and (found.dated == 0).all()
