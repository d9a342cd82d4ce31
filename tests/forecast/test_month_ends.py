"""Month ends are learned from two of them on, if each of them differs clearly, and from nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache

import numpy as np
import pytest

from base.arrays import AnyFloats
from forecast.calendar import Calendar
from forecast.event_calendar import Event
from forecast.fit import fit
from forecast.history import History
from forecast.model import PeakModel
from forecast.month_ends import are_learnable, daily_means, month_end_days, takes_part
from forecast.resources import CPU
from tests.synthetic import synthetic_history

FIRST_DAY = date(2026, 4, 13)  # a Monday
N_DAYS = 77  # to Sunday 28 June; the last workdays to come are 29 and 30 June, the first is 1 July
LAST_WORKDAYS = (date(2026, 4, 29), date(2026, 4, 30), date(2026, 5, 28), date(2026, 5, 29))
BILLING = slice(0, 2)


def history(noise: float = 0.05, seed: int = 0) -> History:
    return synthetic_history(n_services=6, n_days=N_DAYS, first_day=FIRST_DAY, noise=noise, seed=seed)


def with_load(plain: History, load: dict[date, float], services: slice = BILLING) -> History:
    """The history with the load of some days multiplied."""
    usage = plain.usage_per_pod.copy()
    for day, factor in load.items():
        usage[services, :, plain.days.index(day)] *= factor
    return replace(plain, usage_per_pod=usage)


@lru_cache(maxsize=1)
def ordinary() -> PeakModel:
    return fit(history())


def ratio_of(model: PeakModel) -> AnyFloats:
    """Expected load of coming days to that without any month end: (n_services, 14)."""
    return np.asarray((model.usage_dated[:, CPU] / ordinary().usage_dated[:, CPU]).mean(axis=2))


def shown_in(plain: History) -> dict[str, list[int]]:
    """The services that take part in each kind of day."""
    events = month_end_days(plain.calendar, plain.days)
    service = np.arange(len(plain.services))
    load = daily_means(plain.usage_per_pod[:, CPU], service)
    part = takes_part(events, plain.days, plain.describe_days(), load, service, len(service))
    return {event.name: np.flatnonzero(row).tolist() for event, row in zip(events, part, strict=True)}


def test_workdays_at_the_ends_of_months_without_weekends_and_holidays() -> None:
    events = month_end_days(Calendar("UTC", "DE"), [date(2026, 4, 20), date(2026, 5, 2)])
    assert [(event.name, event.first_day) for event in events] == [
        ("last workday of a month", date(2026, 4, 30)),
        ("last workday but one of a month", date(2026, 4, 29)),
        ("first workday of a month", date(2026, 4, 1)),
        ("last workday of a month", date(2026, 5, 29)),
        ("last workday but one of a month", date(2026, 5, 28)),
        ("first workday of a month", date(2026, 5, 4)),
    ]


def test_two_month_ends_foretell_the_third_for_the_services_that_have_them() -> None:
    ratio = ratio_of(fit(with_load(history(), dict.fromkeys(LAST_WORKDAYS, 2.5))))
    # Two of its own count 2 / 3, and so do those of the other: 2.5 ** (8 / 9).
    assert ratio[BILLING, :2] == pytest.approx(2.5 ** (8 / 9), rel=0.06)
    assert ratio[BILLING, 2:] == pytest.approx(1.0, abs=0.05)
    assert ratio[2:] == pytest.approx(1.0, abs=0.05)


def test_month_ends_leave_no_trace_in_ordinary_days_and_errors() -> None:
    model = fit(with_load(history(), dict.fromkeys(LAST_WORKDAYS, 2.5)))
    error = model.shared_std[BILLING, CPU].mean() / ordinary().shared_std[BILLING, CPU].mean()
    assert error == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize(
    "load",
    [
        {LAST_WORKDAYS[1]: 2.5},
        {LAST_WORKDAYS[1]: 2.5, LAST_WORKDAYS[3]: 0.4},
        {LAST_WORKDAYS[1]: 1.25, LAST_WORKDAYS[3]: 1.25},
        {LAST_WORKDAYS[1] - timedelta(days=7): 2.5, LAST_WORKDAYS[3] - timedelta(days=7): 2.5},
    ],
    ids=["one month end", "up and down", "too little", "a week before"],
)
def test_less_than_two_clear_month_ends_of_one_sign_have_no_effect(load: dict[date, float]) -> None:
    changed = with_load(history(), load)
    assert shown_in(changed)["last workday of a month"] == []


def test_a_service_whose_days_vary_as_much_has_no_month_ends() -> None:
    rng = np.random.default_rng(3)
    plain = history()
    usage = plain.usage_per_pod.copy()
    usage[0] *= np.exp(0.5 * rng.normal(size=(N_DAYS, 1)))  # in both services such days happen
    changed = with_load(replace(plain, usage_per_pod=usage), dict.fromkeys(LAST_WORKDAYS, 2.0))
    assert shown_in(changed)["last workday of a month"] == [1]


def test_noise_has_no_month_ends() -> None:
    rng = np.random.default_rng(0)
    plain = history()
    shown = 0
    for _ in range(40):
        usage = plain.usage_per_pod * np.exp(0.3 * rng.standard_t(3, size=(6, 1, N_DAYS, 1)))
        shown += sum(map(len, shown_in(replace(plain, usage_per_pod=usage.astype(np.float32))).values()))
    assert shown <= 3  # of 40 x 6 services x 3 kinds x 2 or 3 months


def test_an_event_of_the_user_stands_in_place_of_a_month_end() -> None:
    event = Event(name="payroll", first_day=date(2026, 6, 30), service="service-0", factor=4.0)
    busy = replace(with_load(history(), dict.fromkeys(LAST_WORKDAYS, 2.5)), events=(event,))
    ratio = ratio_of(fit(busy))
    assert ratio[0, 1] == pytest.approx(4.0, rel=0.06)
    assert ratio[1, 1] == pytest.approx(2.5 ** (8 / 9), rel=0.06)


def test_an_autoscaled_service_gets_more_pods_at_a_month_end() -> None:
    scaling = history()
    replicas = scaling.replicas.copy()
    replicas[3, :, :24], replicas[3, :, 24:] = 4, 12
    plain = fit(replace(scaling, replicas=replicas))
    more = replicas.copy()
    for day in LAST_WORKDAYS:
        more[3, scaling.days.index(day)] *= 2
    model = fit(replace(scaling, replicas=more))
    assert model.autoscaled[3] == 1
    grown = (model.replicas_dated[3] / plain.replicas_dated[3]).mean(axis=1)
    assert grown[:2] == pytest.approx(2 ** (8 / 9), rel=0.06)
    assert grown[2:] == pytest.approx(1.0, abs=0.05)
    assert (model.usage_dated[3, CPU] / plain.usage_dated[3, CPU])[:2] == pytest.approx(1.0, abs=0.05)


def test_a_history_of_one_month_end_cannot_show_any() -> None:
    days = history().days
    assert are_learnable(month_end_days(Calendar(), days), days)
    assert not are_learnable(month_end_days(Calendar(), days[:40]), days[:40])
