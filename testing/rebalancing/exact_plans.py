"""The optimum of a small problem by mixed integer programming, with the planner's own objective and limits.

    min sum_n,k,t w_k h[n,k,t] + sum_p,n price_p x[p,n]
    h[n,k,t] >= slope (s[n,r,t] + z_k margin[n,r,t]) + intercept      for every resource r and line of the penalty
    s[n,r,t] = share[n,r,t] + sum_in u x - sum_out u x <= ceiling[n,r,t]
    sum_n x[p,n] <= 1, requests within what is free, budgets;   x in {0, 1}, h >= 0

x[p,n]: pod p moves to node n. If the requests of these moves fit in no order, the optimum cannot be carried out. Then x
is split by rounds, and what moves in a round finds room beside all that stays until the round before has left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from base.arrays import Floats, Ints
from rebalancer.planning.draft_tables import PlanTables
from rebalancer.planning.heat import SCENARIOS, pieces
from rebalancer.planning.joint_moves import in_order
from rebalancer.planning.problem import Problem
from rebalancer.rebalance_settings import PlanningOptions

NEGLIGIBLE = 1e-9

MOST_ROUNDS = 4
"""More take the solver minutes; no plan has been seen to need more."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """worth : heat prevented less the price of the moves, as far as a plan was found
    most  : what the solver proved that no plan exceeds; equal to worth unless its time ran out
    moves : (n, 2) pods and targets
    """

    worth: float
    most: float
    moves: Ints


class _Rows:
    """Rows of a sparse matrix with their limits, as they come."""

    def __init__(self) -> None:
        self.row: list[Ints] = []
        self.column: list[Ints] = []
        self.value: list[Floats] = []
        self.limits: list[float] = []

    def add(self, columns: Ints, values: Floats, limit: float) -> None:
        """values @ x[columns] <= limit"""
        self.row.append(np.full(len(columns), len(self.limits)))
        self.column.append(columns)
        self.value.append(values)
        self.limits.append(limit)


def optimum(problem: Problem, options: PlanningOptions, *, seconds: float = 60.0) -> Optimum:
    """Return the best plan that can be carried out."""
    found = _optimum(problem, options, 1, seconds)
    if in_order(problem, [(int(pod), int(target)) for pod, target in found.moves], problem.free.copy()) is not None:
        return found
    # As many rounds as moves take every order in.
    ordered = _optimum(problem, options, min(problem.budget.total, MOST_ROUNDS), seconds)
    return replace(ordered, most=min(ordered.most, found.most))


def _optimum(problem: Problem, options: PlanningOptions, rounds: int, seconds: float) -> Optimum:
    tables = PlanTables(problem, options.guarded_margin)
    pods = problem.pods
    movable = np.flatnonzero(np.isfinite(pods.cost))
    may_go = problem.allowed[pods.shape[movable]].copy()
    may_go[np.arange(len(movable)), pods.node[movable]] = False
    chosen, target = np.nonzero(may_go)
    turn = np.repeat(np.arange(rounds), len(chosen))  # the round of each variable
    pod, target = np.tile(movable[chosen], rounds), np.tile(target, rounds)
    if not len(pod):
        return Optimum(0.0, 0.0, np.empty((0, 2), dtype=np.int64))
    n_slots, n_x = tables.share.shape[2], len(pod)
    heat_of = {(n, k, t): i for i, (n, k, t) in enumerate(np.ndindex(problem.n_nodes, len(SCENARIOS), n_slots))}
    rows = _Rows()
    usage = tables.usage(pod).astype(np.float64)  # (n_x, n_counted, n_slots)
    for n in range(problem.n_nodes):
        to, away = np.flatnonzero(target == n), np.flatnonzero(pods.node[pod] == n)
        columns = np.concatenate([to, away])
        signs = np.concatenate([np.ones(len(to)), -np.ones(len(away))])
        change = usage[columns] * signs[:, None, None] * tables.inverse[n].astype(np.float64)[:, None]
        _node_rows(rows, tables, n, columns, change, {kt: n_x + heat_of[(n, *kt)] for kt in np.ndindex(3, n_slots)})
        for i, free in enumerate(problem.free[n]):
            unit = max(float(pods.requests[:, i].max()), NEGLIGIBLE)  # bytes beside shares would upset the solver
            requests = signs * pods.requests[pod[columns], i] / unit
            for number in range(rounds):
                in_time = (turn[columns] < number) | ((turn[columns] == number) & ((signs > 0) | (rounds == 1)))
                rows.add(columns[in_time], requests[in_time], max(float(free), 0.0) / unit)
        rows.add(to, np.ones(len(to)), problem.budget.per_node)
        rows.add(away, np.ones(len(away)), problem.budget.per_node)
    _budget_rows(rows, problem, pod)
    prices = pods.cost[pod] + options.least_gain
    weights = np.tile(np.repeat([weight for _, weight in SCENARIOS], n_slots), problem.n_nodes)
    matrix = coo_array(
        (np.concatenate(rows.value), (np.concatenate(rows.row), np.concatenate(rows.column))),
        shape=(len(rows.limits), n_x + len(weights)),
    ).tocsr()
    answer = milp(
        np.concatenate([prices, weights]),
        integrality=np.concatenate([np.ones(n_x), np.zeros(len(weights))]),
        bounds=Bounds(np.zeros(n_x + len(weights)), np.concatenate([np.ones(n_x), np.full(len(weights), np.inf)])),
        constraints=LinearConstraint(matrix, -np.inf, np.array(rows.limits)),
        options={"time_limit": seconds, "mip_rel_gap": 1e-6},
    )
    heat = float(tables.heat.sum())
    most = heat if answer.mip_dual_bound is None else heat - float(answer.mip_dual_bound)
    if answer.x is None:
        return Optimum(0.0, most, np.empty((0, 2), dtype=np.int64))
    made = np.flatnonzero(answer.x[:n_x] > 0.5)
    return Optimum(heat - float(answer.fun), most, np.column_stack([pod[made], target[made]]))


def _node_rows(
    rows: _Rows, tables: PlanTables, n: int, columns: Ints, change: Floats, heat: dict[tuple[int, ...], int]
) -> None:
    """Heat of a node, and how high its loads may go.

    change : (n_columns, n_counted, n_slots) what each variable adds to the node's share
    heat   : column of each scenario and slot
    """
    highest = np.maximum(change, 0).sum(axis=0)
    for r, t in np.ndindex(*highest.shape):
        share, ceiling = float(tables.share[n, r, t]), float(tables.ceiling[n, r, t])
        if share + highest[r, t] > ceiling:
            rows.add(columns, change[:, r, t], ceiling - share)
        if r >= tables.n_hot:
            continue
        for k, (error, _) in enumerate(SCENARIOS):
            shifted = share + error * float(tables.margin[n, r, t])
            for slope, intercept in pieces(tables.problem.hot):
                if slope * (shifted + highest[r, t]) + intercept > NEGLIGIBLE:
                    rows.add(
                        np.append(columns, heat[k, t]),
                        np.append(slope * change[:, r, t], -1.0),
                        -intercept - slope * shifted,
                    )


def _budget_rows(rows: _Rows, problem: Problem, pod: Ints) -> None:
    budget, pods = problem.budget, problem.pods
    rows.add(np.arange(len(pod)), np.ones(len(pod)), budget.total)
    for of_pod, limits in (
        (np.arange(len(pods)), np.ones(len(pods))),
        (pods.service, budget.per_service),
        (pods.namespace, budget.per_namespace),
    ):
        for group, limit in enumerate(limits.tolist()):
            columns = np.flatnonzero(of_pod[pod] == group)
            if len(columns):
                rows.add(columns, np.ones(len(columns)), float(limit))
