"""What holds for every plan, over random problems with nodes of three sizes, missing limits, tight rooms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base.arrays import Floats
from forecast.hot_share import HOT_SHARE
from forecast.resources import HOT_RESOURCES, MEMORY
from rebalancer.planning.draft_tables import PlanTables
from rebalancer.planning.planner import plan
from rebalancer.planning.problem import Plan, Problem
from rebalancer.rebalance_settings import PlanningOptions
from testing.rebalancing.random_problems import random_problem, small_size

OPTIONS = PlanningOptions(improvement_effort=5)
SEEDS = st.integers(0, 10_000)
a_few = settings(max_examples=max(settings().max_examples // 6, 3))  # each makes a whole plan


def problem_of(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    return random_problem(small_size(rng), rng)


def shares_after(problem: Problem, made: Plan) -> tuple[Floats, Floats]:
    """Shares of capacity before and after: (n_nodes, n_resources, n_slots), NaN where it is no limit."""
    load = problem.load.astype(np.float64)
    for move in made.moves:
        usage = problem.usage[problem.pods.profile[move.pod]]
        load[move.source] -= usage
        load[move.target] += usage
    capacity = problem.capacity[:, :, None]
    return problem.load / capacity, load / capacity


@a_few
@given(SEEDS)
def test_budgets_rules_and_room_hold_at_every_turn(seed: int) -> None:
    problem = problem_of(seed)
    pods, budget = problem.pods, problem.budget
    moves = plan(problem, OPTIONS).moves
    free = problem.free.copy()
    for move in moves:
        assert move.source == pods.node[move.pod]
        assert move.target != move.source
        assert problem.allowed[pods.shape[move.pod], move.target]
        assert np.isfinite(pods.cost[move.pod])
        free[move.target] -= pods.requests[move.pod]
        assert (free[move.target] >= -1e-9 * pods.requests[move.pod]).all()
        free[move.source] += pods.requests[move.pod]
    assert len({move.pod for move in moves}) == len(moves) <= budget.total
    for rows, limits in ((pods.service, budget.per_service), (pods.namespace, budget.per_namespace)):
        assert all(n <= limits[row] for row, n in Counter(rows[[move.pod for move in moves]]).items())
    assert all(n <= budget.per_node for n in Counter(move.source for move in moves).values())
    assert all(n <= budget.per_node for n in Counter(move.target for move in moves).values())


@a_few
@given(SEEDS)
def test_heat_falls_by_no_more_than_the_bound(seed: int) -> None:
    problem = problem_of(seed)
    made = plan(problem, OPTIONS)
    gain = made.heat_before - made.heat_after
    price = sum(float(problem.pods.cost[move.pod]) + OPTIONS.least_gain for move in made.moves)
    assert gain >= price
    assert sum(move.gain for move in made.moves) == pytest.approx(gain, abs=0.05)
    assert gain <= made.most_gain + 1e-3
    assert made.most_gain <= made.heat_before * 1.001
    assert bool(made.moves) <= (made.most_gain > 0)


@a_few
@given(SEEDS, st.sampled_from([0.0, 0.5, 1.0]))
def test_no_node_becomes_hot_and_no_memory_overflows(seed: int, guarded: float) -> None:
    problem = problem_of(seed)
    before, after = shares_after(problem, plan(problem, replace(OPTIONS, guarded_margin=guarded)))
    margin = guarded * problem.margin / problem.capacity[:, :, None]
    for r in HOT_RESOURCES:
        was_cool = before[:, r] + margin[:, r] <= HOT_SHARE
        assert not (was_cool & (after[:, r] + margin[:, r] > HOT_SHARE + 1e-5)).any()
    memory = after[:, MEMORY] + margin[:, MEMORY]
    assert not (memory > np.fmax(1.0, before[:, MEMORY] + margin[:, MEMORY]) + 1e-5).any()


@a_few
@given(SEEDS)
def test_the_same_problem_has_the_same_plan_and_is_left_as_it_was(seed: int) -> None:
    problem = problem_of(seed)
    kept = problem.load.copy(), problem.free.copy(), problem.pods.node.copy(), problem.budget.per_service.copy()
    assert plan(problem, OPTIONS) == plan(problem, OPTIONS)
    now = problem.load, problem.free, problem.pods.node, problem.budget.per_service
    assert all(np.array_equal(a, b) for a, b in zip(kept, now, strict=True))


@a_few
@given(SEEDS)
def test_nothing_is_moved_where_nothing_is_hot(seed: int) -> None:
    problem = problem_of(seed)
    largest = float(np.nanmax((problem.load + problem.margin) / problem.capacity[:, :, None]))
    cool = replace(problem, capacity=problem.capacity * max(largest / 0.69, 1.0))
    made = plan(cool, OPTIONS)
    assert made.moves == ()
    assert (made.most_gain, made.heat_before, made.hot_before, made.at_risk_before) == (0.0, 0.0, 0, 0)


@a_few
@given(SEEDS)
def test_the_caller_is_asked_about_each_move_after_those_before_it(seed: int) -> None:
    problem = problem_of(seed)
    allowed: set[tuple[tuple[int, int], ...]] = set()

    def may_move(pod: int, target: int, before: Sequence[tuple[int, int]]) -> bool:
        if (pod + target) % 5 == 0:
            return False
        allowed.add((*before, (pod, target)))
        return True

    ends = [(move.pod, move.target) for move in plan(problem, OPTIONS, may_move).moves]
    assert not [1 for pod, target in ends if (pod + target) % 5 == 0]
    assert all(tuple(ends[: i + 1]) in allowed for i in range(len(ends)))


@a_few
@given(SEEDS)
def test_moves_taken_back_leave_the_tables_as_they_were(seed: int) -> None:
    tables = PlanTables(problem_of(seed), 0.5)
    share, heat, free = tables.share.copy(), tables.heat.copy(), tables.free.copy()
    pods = np.flatnonzero(tables.movable)[:3].tolist()
    for pod in pods:
        tables.make(pod, int((tables.node_of[pod] + 1) % len(heat)))
    for pod in pods:  # in another order than undoing would need
        tables.move_back(pod)
    np.testing.assert_allclose(tables.share, share, atol=1e-5)
    np.testing.assert_allclose(tables.heat, heat, atol=1e-3)
    np.testing.assert_allclose(tables.free, free, rtol=1e-9, atol=1e-4)  # of cores and bytes
    assert tables.left == tables.problem.budget.total
    assert not tables.moved.any()
