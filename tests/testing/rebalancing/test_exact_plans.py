"""The exact optimum beside a search of all plans, on problems small enough for that."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from rebalancer.planning.options import PlanningOptions
from rebalancer.planning.problem import Problem
from rebalancer.planning.tables import PlanTables
from testing.rebalancing.exact_plans import optimum
from testing.rebalancing.random_problems import Size, random_problem

OPTIONS = PlanningOptions()


def best_of_all(problem: Problem) -> float:
    """Try every assignment of pods to nodes, and every order of its moves."""
    pods, best = problem.pods, 0.0
    for ends in product(range(problem.n_nodes), repeat=len(pods)):
        moves = [(pod, end) for pod, end in enumerate(ends) if end != pods.node[pod]]
        if len(moves) <= problem.budget.total and np.isfinite(pods.cost[[pod for pod, _ in moves]]).all():
            best = max(best, *(_worth(problem, order) for order in permutations(moves)))
    return best


def _worth(problem: Problem, moves: tuple[tuple[int, int], ...]) -> float:
    tables = PlanTables(problem, OPTIONS.guarded_margin)
    heat = tables.heat.sum()
    for pod, target in moves:
        if not (tables.may_leave(pod) and tables.open_targets(pod)[target]):
            return 0.0
        tables.make(pod, target)
    if (tables.share > tables.ceiling + 1e-6).any():
        return 0.0
    price = sum(float(problem.pods.cost[pod]) + OPTIONS.least_gain for pod, _ in moves)
    return float(heat - tables.heat.sum()) - price


@pytest.mark.parametrize("seed", range(6))
def test_the_solver_finds_the_best_of_all_plans(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = Size(n_nodes=3, n_pods=5, n_services=5, n_slots=4, used=0.75, budget=3)
    problem = random_problem(size, rng)
    problem = replace(problem, allowed=np.ones_like(problem.allowed))
    found = optimum(problem, OPTIONS)
    assert found.worth == pytest.approx(best_of_all(problem), abs=1e-3)
    assert found.most == pytest.approx(found.worth, abs=1e-3)
