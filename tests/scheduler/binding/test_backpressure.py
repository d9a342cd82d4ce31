"""When the loop pauses because bindings are behind."""

from __future__ import annotations

import pytest

from scheduler.binding.backpressure import Backpressure


def test_it_begins_at_the_limit_and_ends_at_half_of_it() -> None:
    pressure = Backpressure(32)
    unfinished = [0, 31, 32, 40, 31, 16, 15, 31, 32, 16]
    assert [pressure.is_on(n) for n in unfinished] == [False, False, True, True, True, True, False, False, True, True]


@pytest.mark.parametrize("most", [1, 2])
def test_the_smallest_limits_let_the_loop_go_on(most: int) -> None:
    pressure = Backpressure(most)
    assert not pressure.is_on(0) and pressure.is_on(most) and not pressure.is_on(0)
