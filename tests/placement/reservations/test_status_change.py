"""What is written into the status of a Reservation, and when nothing is."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.held_rooms import Taker
from placement.reservations.reservation import Situation, status_change
from tests.placement.reservations.test_decoding import AVAILABLE, CREATED, reservation

TAKER = Taker("cart-1", "uid-cart-1")
END = CREATED + 24 * 3600


@pytest.mark.parametrize(
    ("status", "situation", "now", "expected"),
    [
        (
            AVAILABLE,
            Situation(taker=TAKER),
            CREATED,
            {"phase": "Taken", "takenBy": {"name": "cart-1", "uid": TAKER.uid}},
        ),
        (AVAILABLE, Situation(taker=TAKER), END, {"phase": "Taken"}),
        (AVAILABLE, Situation(), END, {"phase": "Expired"}),
        ({}, Situation(), END, {"phase": "Expired"}),
        (AVAILABLE, Situation(has_node=False), CREATED, {"phase": "Pending", "node": None, "since": None}),
        ({}, Situation(why_waiting="no room"), CREATED, {"phase": "Pending", "message": "no room"}),
    ],
    ids=["taken", "taken in time", "expired", "expired without a node", "node gone", "why it waits"],
)
def test_changes(status: dict[str, Any], situation: Situation, now: float, expected: dict[str, Any]) -> None:
    change = status_change(reservation(**status), situation, now)
    assert change is not None
    assert {key: change[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("status", "situation", "now"),
    [
        (AVAILABLE, Situation(), END - 1),
        (AVAILABLE, Situation(is_in_use=True), END),
        (AVAILABLE, Situation(is_in_use=True, has_node=False), CREATED),
        (AVAILABLE | {"phase": "Taken"}, Situation(has_node=False), END),
        (AVAILABLE | {"phase": "Expired"}, Situation(taker=TAKER), END),
        ({"message": "no room"}, Situation(why_waiting="no room"), CREATED),
    ],
    ids=["held", "a pod is being bound", "the same", "taken for good", "expired for good", "says so already"],
)
def test_nothing_changes(status: dict[str, Any], situation: Situation, now: float) -> None:
    assert status_change(reservation(**status), situation, now) is None
