"""Moves that are worth it only together: exchanges, room that one or several pods make, and their order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rebalancer.planning.joint_moves import in_order
from rebalancer.planning.planner import plan
from rebalancer.planning.problem import Problem
from rebalancer.rebalance_settings import PlanningOptions
from tests.rebalancer.planning.small_problem import cpu_problem

OPTIONS = PlanningOptions()


def room(problem: Problem, *cores: float) -> Problem:
    """Return the problem with so much room by requests on each node."""
    return replace(problem, free=np.array(cores)[:, None])


def test_a_large_pod_changes_places_with_a_small_one() -> None:
    # Either move alone helps nobody: 6 on 6 is too much, and 3 on the hot node heats it.
    problem = room(cpu_problem([(0, 6.0), (0, 4.0), (1, 3.0), (1, 3.0)], [10.0, 10.0]), 0.0, 6.0)
    found = plan(problem, OPTIONS)
    assert {(move.pod, move.target) for move in found.moves} in (
        {(0, 1), (2, 0)},
        {(0, 1), (3, 0)},
        {(1, 1), (2, 0)},
        {(1, 1), (3, 0)},
    )
    assert [move.partner for move in found.moves] == [1, 0]
    assert found.heat_after < found.heat_before
    assert found.moves[0].source == 0, "the hot node has no room before its pod leaves"
    assert plan(problem, replace(OPTIONS, exchanges_looked_at=0, chains_looked_at=0)).moves == ()


def test_a_pod_makes_room_on_the_target_first() -> None:
    # Node 1 alone is large enough for the pod of node 0, but has no room by requests; node 2 takes the small one.
    problem = room(cpu_problem([(0, 9.0), (1, 2.0)], [10.0, 30.0, 6.0]), 0.0, 8.0, 3.0)
    found = plan(problem, OPTIONS)
    assert [(move.pod, move.target) for move in found.moves] == [(1, 2), (0, 1)]
    assert found.moves[0].reason == "makes room on node 1 for pod 0"
    assert found.moves[0].relief is None
    assert [move.partner for move in found.moves] == [1, 0]
    assert found.hot_after == 0


def test_several_pods_make_room() -> None:
    problem = room(cpu_problem([(0, 9.0), (1, 2.0), (1, 2.0)], [10.0, 30.0, 6.0, 6.0]), 0.0, 5.5, 2.0, 2.0)
    found = plan(problem, OPTIONS)
    assert [(move.pod, move.target) for move in found.moves][-1] == (0, 1)
    assert {move.pod for move in found.moves[:-1]} == {1, 2}
    assert [move.partner for move in found.moves][:-1] == [2, 2]
    assert plan(problem, replace(OPTIONS, chains_looked_at=0)).moves == ()


def test_no_order_is_found_for_pods_that_wait_for_each_other() -> None:
    problem = room(cpu_problem([(0, 5.0), (1, 5.0)], [10.0, 10.0, 10.0]), 1.0, 1.0, 9.0)
    assert in_order(problem, [(0, 1), (1, 0)], problem.free.copy()) is None
    assert in_order(problem, [(0, 1), (1, 2)], problem.free.copy()) == ((1, 2), (0, 1))
