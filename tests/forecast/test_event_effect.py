"""Events are kept out of ordinary days, and come back as a factor of the days that they will cover."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache

import numpy as np
import pytest

from forecast.calendar import Calendar, DayType
from forecast.event_calendar import Event
from forecast.event_effect import EventDays, shrunk_factors
from forecast.fit import fit
from forecast.history import History
from forecast.model import PeakModel
from forecast.resources import CPU, MEMORY
from tests.synthetic import MONDAY, synthetic_history

TOMORROW = MONDAY + timedelta(days=28)


def history() -> History:
    return synthetic_history(n_services=6, noise=0.02)


@lru_cache(maxsize=1)
def ordinary() -> PeakModel:
    return fit(history())


def on_the_days(with_events: History, day: int, load: float, services: slice = slice(None)) -> History:
    """The history with the load of one day multiplied."""
    usage = with_events.usage_per_pod.copy()
    usage[services, :, day] *= load
    return replace(with_events, usage_per_pod=usage)


def test_a_coming_event_multiplies_the_load_of_its_services_and_not_their_memory() -> None:
    event = Event(name="sale", first_day=TOMORROW + timedelta(days=1), service="service-1", factor=2.0)
    model = fit(replace(history(), events=(event,)))
    ratio = model.usage_dated / ordinary().usage_dated
    assert ratio[1, CPU, 1] == pytest.approx(2.0)
    assert ratio[1, MEMORY, 1] == pytest.approx(1.0)
    ratio[1, :, 1] = 1.0
    assert ratio == pytest.approx(1.0)
    deviation = model.scenario_deviation[1, CPU, 0] / ordinary().scenario_deviation[1, CPU, 0]
    assert deviation[1] == pytest.approx(2.0)
    assert np.delete(deviation, 1, axis=0) == pytest.approx(1.0)
    peaks = model.service_peaks(event.first_day)[1, CPU] / ordinary().service_peaks(event.first_day)[1, CPU]
    assert peaks == pytest.approx(2.0)


def test_hours_outside_the_event_stay_as_they_are() -> None:
    event = Event(name="sale", first_day=TOMORROW, hours="18-21", factor=3.0)
    ratio = fit(replace(history(), events=(event,))).usage_dated[:, CPU, 0] / ordinary().usage_dated[:, CPU, 0]
    assert ratio[:, 36:42] == pytest.approx(3.0)
    assert np.delete(ratio, range(36, 42), axis=1) == pytest.approx(1.0)


def test_a_past_event_leaves_no_trace_in_ordinary_days() -> None:
    disturbed = on_the_days(history(), 21, 4.0)  # the Monday before
    event = Event(name="sale", first_day=MONDAY + timedelta(days=21), factor=4.0)
    blind, knowing = fit(disturbed), fit(replace(disturbed, events=(event,)))
    truth = ordinary().usage_dated[:, CPU, 0]
    error = [np.abs(model.usage_dated[:, CPU, 0] / truth - 1).mean() for model in (blind, knowing)]
    assert error[0] > 0.2
    assert error[1] < 0.25 * error[0]
    assert knowing.shared_std[:, CPU].mean() < 0.5 * blind.shared_std[:, CPU].mean()


def test_an_event_without_a_factor_is_learned_from_the_last_of_its_name() -> None:
    disturbed = on_the_days(history(), 16, 3.0)
    earlier = Event(name="sale", first_day=MONDAY + timedelta(days=16))
    other = Event(name="match", first_day=TOMORROW + timedelta(days=3))
    coming = Event(name="sale", first_day=TOMORROW + timedelta(days=2))
    model = fit(replace(disturbed, events=(earlier, other, coming)))
    ratio = model.usage_dated[:, CPU] / ordinary().usage_dated[:, CPU]
    # One of its own counts half, and so do those of all others: 3 ** 0.75.
    assert ratio[:, 2] == pytest.approx(3.0**0.75, rel=0.06)
    assert ratio[:, 3] == pytest.approx(1.0, abs=0.05)


def test_a_service_that_never_follows_an_event_learns_less_of_it_than_one_that_does() -> None:
    disturbed = on_the_days(history(), 16, 3.0, slice(0, 3))
    events = tuple(Event(name="sale", first_day=day) for day in (MONDAY + timedelta(days=16), TOMORROW))
    ratio = fit(replace(disturbed, events=events)).usage_dated[:, CPU, 0] / ordinary().usage_dated[:, CPU, 0]
    assert ratio[:3].min() > 1.3 * ratio[3:].max()


def test_what_happens_on_most_days_is_no_event() -> None:
    history_ = history()
    event = Event(name="always", first_day=MONDAY, last_day=TOMORROW, factor=2.0, service="service-0")
    days = EventDays.of((event,), history_.services, history_.days, np.ones((6, 28), dtype=bool))
    assert not days.special.any()
    model = fit(replace(history_, events=(event,)))
    np.testing.assert_allclose(model.usage_dated, ordinary().usage_dated)


def test_an_autoscaled_service_gets_more_pods_and_not_more_load_each() -> None:
    scaling = history()
    replicas = scaling.replicas.copy()
    replicas[2, :, :24] = 4
    replicas[2, :, 24:] = 12
    scaling = replace(scaling, replicas=replicas)
    event = Event(name="sale", first_day=TOMORROW, factor=2.0)
    before, after = fit(scaling), fit(replace(scaling, events=(event,)))
    assert before.autoscaled[2] == 1
    assert after.replicas_dated[2, 0] / before.replicas_dated[2, 0] == pytest.approx(2.0)
    assert after.usage_dated[2] / before.usage_dated[2] == pytest.approx(1.0)
    assert after.usage_dated[1, CPU, 0] / before.usage_dated[1, CPU, 0] == pytest.approx(2.0)


def test_pods_of_a_past_event_are_no_usual_pods() -> None:
    scaling = history()
    replicas = scaling.replicas.copy()
    replicas[2, :, :24] = 4
    replicas[2, :, 24:] = 12
    usual = fit(replace(scaling, replicas=replicas)).replicas_dated[2]
    replicas = replicas.copy()
    replicas[2, 21:23] *= 3
    event = Event(name="sale", first_day=MONDAY + timedelta(days=21), last_day=MONDAY + timedelta(days=22), factor=3.0)
    model = fit(replace(scaling, replicas=replicas, events=(event,)))
    np.testing.assert_allclose(model.replicas_dated[2], usual)


def test_a_service_learns_nothing_from_an_event_before_it_existed() -> None:
    young = on_the_days(history(), 16, 3.0)
    young.usage_per_pod[5, :, :25] = np.nan
    event, again = (Event(name="sale", first_day=day) for day in (MONDAY + timedelta(days=16), TOMORROW))
    plain = fit(replace(young, events=(event,)))
    ratio = fit(replace(young, events=(event, again))).usage_dated[:, CPU, 0] / plain.usage_dated[:, CPU, 0]
    assert ratio[5] == pytest.approx(3.0**0.5, rel=0.06)  # what the others did, of which there was one


def test_an_event_on_a_holiday_is_held_against_holidays() -> None:
    whit_monday, ascension = date(2026, 5, 25), date(2026, 5, 14)
    festive = synthetic_history(n_services=6, noise=0.02, calendar=Calendar("UTC", "DE"), first_day=date(2026, 4, 27))
    days = list(festive.days)
    usage = festive.usage_per_pod.copy()
    for holiday in (date(2026, 5, 1), ascension):
        usage[:, :, days.index(holiday)] *= 0.4
    festive = replace(festive, usage_per_pod=usage)
    events = tuple(Event(name="sale", first_day=day) for day in (ascension, whit_monday))
    model = fit(replace(festive, events=events))
    ratio = model.usage_dated[:, CPU, 0] / model.usage_day_type[:, CPU, DayType.WORKDAY]
    assert np.median(ratio) == pytest.approx(0.43, abs=0.05)  # held against a workday, the factor would count twice


def test_factors_are_shrunk_towards_those_of_the_group_and_to_one() -> None:
    effects = np.log([[4.0, 4.0, np.nan, 9.0], [4.0, np.nan, np.nan, np.nan]])
    factors = shrunk_factors(effects, np.array([0, 0, 0, 1]))
    shared = 4.0 ** (2 / 3)
    expected = [4.0 ** (2 / 3) * shared ** (1 / 3), 2.0 * shared**0.5, shared, 3.0 * 9.0**0.25]
    assert factors == pytest.approx(expected)


def test_events_are_part_of_what_a_model_was_fitted_on() -> None:
    event = Event(name="sale", first_day=TOMORROW, factor=2.0)
    digests = {replace(history(), events=events).digest() for events in ((), (event,), (replace(event, factor=3.0),))}
    assert len(digests) == 3
