"""Which services and half hours an event covers, and what a wrong one is answered."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from base.errors import InputError
from forecast.event_calendar import Event, events_between
from forecast.service_key import ServiceKey
from trainer.history.user_lists import ListedEvent

FRIDAY = date(2026, 11, 27)
CART = ServiceKey("shop", "Deployment", "cart")


@pytest.mark.parametrize(
    ("namespace", "service", "concerned"),
    [
        ("*", "*", True),
        ("shop", "cart", True),
        ("shop", "ca*", True),
        ("sh?p", "Deployment/cart", True),
        ("shop", "StatefulSet/cart", False),
        ("bank", "*", False),
        ("shop", "art", False),
    ],
)
def test_patterns_select_services(namespace: str, service: str, concerned: bool) -> None:
    assert Event(name="sale", first_day=FRIDAY, namespace=namespace, service=service).concerns(CART) is concerned


@pytest.mark.parametrize(
    ("hours", "first", "end"),
    [(None, 0, 48), ("18-23", 36, 46), ("8:30-12", 17, 24), ("0-24", 0, 48), ("8:10 - 8:40", 16, 18)],
)
def test_hours_cover_whole_half_hours(hours: str | None, first: int, end: int) -> None:
    covered = Event(name="sale", first_day=FRIDAY, hours=hours).slots([FRIDAY])
    assert covered[0].nonzero()[0].tolist() == list(range(first, end))


def test_first_and_last_day_are_both_covered() -> None:
    event = Event(name="sale", first_day=FRIDAY, last_day=FRIDAY + timedelta(days=2))
    days = [FRIDAY + timedelta(days=i) for i in range(-1, 4)]
    assert event.slots(days).all(axis=1).tolist() == [False, True, True, True, False]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"first_day": "2026-11-31"}, "first_day"),
        ({"last_day": FRIDAY - timedelta(days=1)}, "lies before first_day"),
        ({"last_day": FRIDAY + timedelta(days=400)}, "lasts 401 days"),
        ({"hours": "22-2"}, "of two days, write two events"),
        ({"hours": 1080}, "write the hours of a day"),
        ({"hours": "8:70-9"}, "write the hours of a day"),
        ({"factor": -1}, "factor is -1"),
        ({"factr": 2}, "no setting 'factr'"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], what: str) -> None:
    whole: dict[str, Any] = {"name": "sale", "first_day": FRIDAY, **given}
    with pytest.raises(InputError, match=what):
        ListedEvent(**whole)


def test_only_events_that_touch_the_days_are_in_reach() -> None:
    day = date(2026, 5, 10)
    listed = [
        Event(name=str(offset), first_day=day + timedelta(days=offset), last_day=day + timedelta(days=offset + 2))
        for offset in range(-4, 5)
    ]
    assert [int(event.name) for event in events_between(listed, day, day + timedelta(days=1))] == [-2, -1, 0, 1]
