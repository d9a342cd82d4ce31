"""Plans beside the exact optimum of small problems. benchmarks/rebalance_plans.py prints the same as figures."""

from __future__ import annotations

import numpy as np
import pytest

from rebalancer.planning.planner import plan
from rebalancer.rebalance_settings import PlanningOptions
from testing.rebalancing.exact_plans import optimum
from testing.rebalancing.random_problems import random_problem, small_size

OPTIONS = PlanningOptions()


def share_of_optimum(seed: int, seconds: float) -> float:
    """Return the plan's worth by the optimum's; checks that the bounds hold."""
    rng = np.random.default_rng(seed)
    problem = random_problem(small_size(rng), rng)
    best = optimum(problem, OPTIONS, seconds=seconds)
    made = plan(problem, OPTIONS)
    worth = made.heat_before - made.heat_after
    worth -= sum(float(problem.pods.cost[move.pod]) + OPTIONS.least_gain for move in made.moves)
    assert worth <= best.most + 1e-2
    assert best.worth <= made.most_gain + 1e-2, "the bound holds for the optimum, too"
    return worth / best.worth if best.worth > 1e-3 else 1.0 + worth


@pytest.mark.parametrize("seed", [0, 57])
def test_a_plan_is_within_five_percent_of_the_optimum(seed: int) -> None:
    assert share_of_optimum(seed, seconds=120.0) >= 0.95
