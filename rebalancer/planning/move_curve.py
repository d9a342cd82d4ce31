"""How many moves leave how many hot half hours, whatever the budget of a night allows: 0, 1, 2, 4, ... moves.

Single moves are made best first, so the first n of a plan without a budget are the plan of a budget of n: one gives
the whole curve. Pairs and chains, which a real plan also makes, are left out: it may do better by a little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rebalancer.planning.draft_tables import PlanTables
from rebalancer.planning.heat import hot_half_hours
from rebalancer.planning.planner import plan
from rebalancer.planning.problem import Budget, Move, Problem
from rebalancer.rebalance_settings import PlanningOptions

MENDED: Final = 0.95
"""Share of what all moves together prevent at which a cluster counts as mended: the last moves gain little each."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """So many moves, and the hot node half hours that they leave."""

    moves: int
    hot: int


@dataclass(frozen=True, slots=True)
class MoveCurve:
    """
    points  : by rising moves, from none to all that are worth it
    needed  : moves that mend the cluster
    per_service, per_namespace, per_node : what the needed moves take of these budgets, in one night
    """

    points: tuple[CurvePoint, ...]
    needed: int
    per_service: int
    per_namespace: int
    per_node: int


def move_curve(problem: Problem, options: PlanningOptions) -> MoveCurve:
    """Return the curve of a problem, of which the budget does not count."""
    n, pods = len(problem.pods), problem.pods
    many = Budget(n, np.full_like(problem.budget.per_service, n), np.full_like(problem.budget.per_namespace, n), n)
    free, single = (
        replace(problem, budget=many),
        replace(options, exchanges_looked_at=0, chains_looked_at=0, improvement_effort=0.0),
    )
    moves = plan(free, single).moves
    left = list(_hot_after_each(free, moves, options))
    steps = [0, *_doubling(len(moves))]
    goal = left[0] - MENDED * (left[0] - min(left))
    needed = next(n_moves for n_moves, hot in enumerate(left) if hot <= goal)
    made = moves[:needed]
    return MoveCurve(
        points=tuple(CurvePoint(n_moves, left[n_moves]) for n_moves in steps),
        needed=needed,
        per_service=_most(pods.service[[one.pod for one in made]].tolist()),
        per_namespace=_most(pods.namespace[[one.pod for one in made]].tolist()),
        per_node=max(_most([one.source for one in made]), _most([one.target for one in made])),
    )


def _hot_after_each(problem: Problem, moves: tuple[Move, ...], options: PlanningOptions) -> Iterator[int]:
    """Yield the hot half hours before all moves and after each."""
    tables = PlanTables(problem, options.guarded_margin)
    hot = hot_half_hours(tables.share[:, : tables.n_hot], problem.hot)
    yield hot
    for move in moves:
        both = np.array([move.source, move.target])
        hot -= hot_half_hours(tables.share[both, : tables.n_hot], problem.hot)
        tables.make(move.pod, move.target)
        hot += hot_half_hours(tables.share[both, : tables.n_hot], problem.hot)
        yield hot


def _doubling(last: int) -> Iterator[int]:
    """1, 2, 4, ... and the last."""
    n = 1
    while n < last:
        yield n
        n *= 2
    if last:
        yield last


def _most(items: list[int]) -> int:
    return max(Counter(items).values(), default=0)
