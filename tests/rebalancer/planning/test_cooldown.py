"""No ping-pong: rest after a move, longer after each, and no way back."""

from __future__ import annotations

from rebalancer.cooldown import CooldownOptions, PastMove, first_night, may_move, nodes_left

OPTIONS = CooldownOptions()


def test_each_further_move_doubles_the_rest_up_to_its_longest() -> None:
    moves = [PastMove(100, "a"), PastMove(103, "b"), PastMove(108, "c")]
    assert [first_night(moves[:n], OPTIONS) for n in (0, 1, 2, 3)] == [None, 103, 108, 117]
    assert may_move([], 100, OPTIONS) and nodes_left([], 100, OPTIONS) == frozenset()
    many = [PastMove(100 + n, n) for n in range(12)]
    assert first_night(many, OPTIONS) == 111 + OPTIONS.longest_nights + 1
    # Moves of long ago count no more.
    assert first_night([PastMove(100, "a"), PastMove(100 + OPTIONS.remember_days, "b")], OPTIONS) == 131


def test_a_pod_does_not_return_for_two_weeks() -> None:
    moves = [PastMove(100, "a"), PastMove(103, "b")]
    assert nodes_left(moves, 113, OPTIONS) == {"a", "b"}
    assert nodes_left(moves, 114, OPTIONS) == {"b"}
    assert nodes_left(moves, 117, OPTIONS) == frozenset()
