"""From a problem to its plan: single moves, then pairs, then second thoughts; and what any plan could gain at most."""

from __future__ import annotations

import numpy as np

from rebalancer.planning.bound import most_gain
from rebalancer.planning.finished_plan import finished_plan
from rebalancer.planning.options import PlanningOptions
from rebalancer.planning.problem import Plan, Problem
from rebalancer.planning.second_thoughts import improve, make_best_steps
from rebalancer.planning.steps import Draft, MayMove
from rebalancer.planning.tables import PlanTables
from rebalancer.planning.targets import TargetFinder


def plan(problem: Problem, options: PlanningOptions, may_move: MayMove | None = None) -> Plan:
    """Return ordered moves that prevent the most heat for their cost, within the budget.

    may_move : asked with a pod, its target and the (pod, target) before it, for chosen moves only; see MayMove

    The same problem gives the same plan. Raises InputError if the columns do not fit together.
    """
    tables = PlanTables(problem, options.guarded_margin)
    most = most_gain(tables)
    draft = Draft(tables, TargetFinder(tables, options), options, may_move)
    if most > 0:
        most_worth = most_gain(tables, draft.price(np.arange(len(problem.pods))))
        heat_before = float(tables.heat.sum())
        make_best_steps(draft)
        improve(draft, heat_before, most_worth)
    return finished_plan(draft, most)
