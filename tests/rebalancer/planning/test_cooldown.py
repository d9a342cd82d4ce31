"""No ping-pong: rest after a move, longer after each, and no way back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.planning.cooldown import CooldownOptions, PastMove, first_night, may_move, nodes_left

OPTIONS = CooldownOptions()


def test_a_pod_that_was_never_moved_may_move() -> None:
    assert first_night([], OPTIONS) is None
    assert may_move([], 100, OPTIONS)
    assert nodes_left([], 100, OPTIONS) == frozenset()


@pytest.mark.parametrize(("night", "may"), [(100, False), (101, False), (102, False), (103, True), (110, True)])
def test_a_pod_rests_for_two_nights_after_a_move(night: int, may: bool) -> None:
    assert may_move([PastMove(100, "a")], night, OPTIONS) is may


def test_each_further_move_doubles_the_rest() -> None:
    moves = [PastMove(100, "a"), PastMove(103, "b"), PastMove(108, "c")]
    assert [first_night(moves[:n], OPTIONS) for n in (1, 2, 3)] == [103, 108, 117]


def test_the_rest_has_a_longest_length() -> None:
    moves = [PastMove(100 + n, n) for n in range(12)]
    assert first_night(moves, OPTIONS) == 111 + OPTIONS.longest_nights + 1


def test_old_moves_count_no_more() -> None:
    assert first_night([PastMove(100, "a"), PastMove(100 + OPTIONS.remember_days, "b")], OPTIONS) == 131


def test_a_pod_does_not_return_for_two_weeks() -> None:
    moves = [PastMove(100, "a"), PastMove(103, "b")]
    assert nodes_left(moves, 113, OPTIONS) == {"a", "b"}
    assert nodes_left(moves, 114, OPTIONS) == {"b"}
    assert nodes_left(moves, 117, OPTIONS) == frozenset()


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_the_rest_never_gets_shorter_with_more_moves(gaps: list[int]) -> None:
    nights = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    moves = [PastMove(night, index) for index, night in enumerate(nights)]
    first = first_night(moves, OPTIONS)
    assert first is not None
    assert first > nights[-1] + OPTIONS.nights
    assert first >= (first_night(moves[-1:], OPTIONS) or 0)
