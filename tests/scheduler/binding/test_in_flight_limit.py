from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.binding.in_flight_limit import Backpressure, InFlightLimit
from testing.settable_clock import SettableClock


def test_a_burst_of_refusals_counts_once() -> None:
    clock = SettableClock(0.0)
    limit = InFlightLimit(128, clock=clock)
    for _ in range(128):
        limit.was_throttled()
    assert limit.now == 96 and limit.throttled == 128
    clock.now = 1.0
    limit.was_throttled()
    assert limit.now == 72


@given(most=st.integers(1, 300), events=st.lists(st.sampled_from(["429", "ok", "second"]), max_size=300))
def test_there_is_always_room_for_some(most: int, events: list[str]) -> None:
    clock = SettableClock(0.0)
    limit = InFlightLimit(most, clock=clock)
    for event in events:
        if event == "second":
            clock.now += 1.0
        elif event == "429":
            limit.was_throttled()
        else:
            limit.went_well()
        assert min(4, most) <= limit.now <= most


@pytest.mark.parametrize("most", [1, 2])
def test_the_smallest_limits_let_the_loop_go_on(most: int) -> None:
    pressure = Backpressure(most)
    assert not pressure.is_on(0) and pressure.is_on(most) and not pressure.is_on(0)
