"""From a problem to its plan: single moves, then pairs, then second thoughts; every move with its gain and its reason,
and what any plan could gain at most, from a linear programme.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import AnyFloats, Floats, Floats32, Ints
from forecast.resources import RESOURCES
from rebalancer.planning.draft_steps import Draft, DraftStep, MayMove
from rebalancer.planning.draft_tables import PlanTables
from rebalancer.planning.heat import SCENARIOS, hot_half_hours, node_heat, penalty
from rebalancer.planning.problem import Move, MoveReason, Plan, Problem
from rebalancer.planning.second_thoughts import improve, make_best_steps
from rebalancer.planning.targets import TargetFinder
from rebalancer.rebalance_settings import PlanningOptions

# How much heat any plan within the budget could prevent: an upper bound, from a linear programme.
#
# A pod that arrives never cools a node. So a plan gains at most what nodes lose by the pods that leave them, targets
# and their room left aside. Let r be the worst resource of a node in a slot before any move. As the penalty is convex,
#
#     penalty(max_r x) - penalty(max_r x - u_r) <= sum_pods [penalty(x_r) - penalty(x_r - u_pod,r)],
#
# and all nodes together lose at most
#
#     max sum_n z_n    z_n <= heat_n,   z_n <= sum_pods a_pod y_pod,   0 <= y <= 1,
#                      sum y <= total, and by service, namespace and node,
#
# where y says how much of a pod leaves and a is the sum of the right side over the slots and scenarios of heat.py.

ROUNDING: Final = 1e-4
"""What the bound is raised by, so that it holds in spite of float32."""


def most_gain(tables: PlanTables, prices: Floats | None = None) -> float:
    """Return node half hours of heat that no plan exceeds; of tables that hold no moves yet.

    prices : (n_pods,) to be paid for each move; then no plan is worth more than what is returned
    """
    hot = np.flatnonzero(tables.heat > 0)
    pods = [tables.pods_on(node) for node in hot.tolist()]
    columns = np.concatenate([np.empty(0, dtype=np.int64), *pods])
    if not len(columns) or tables.left <= 0:
        return 0.0
    gains = np.concatenate([pod_gains(tables, node, on_it) for node, on_it in zip(hot.tolist(), pods, strict=True)])
    useful = gains > 0
    columns = columns[useful]
    price = np.zeros(len(columns)) if prices is None else prices[columns]
    return _solve(tables, hot, columns, gains[useful], price) if useful.any() else 0.0


def pod_gains(tables: PlanTables, node: int, pods: Ints) -> Floats:
    """(n_pods,) what the node loses at most by each pod, whatever else leaves it."""
    share, margin = (a[0] for a in tables.hot_part(np.array([node])))  # (n_hot_resources, n_slots)
    usage = tables.usage(pods)[:, : tables.n_hot] * tables.inverse[node, : tables.n_hot, None]
    slots, limit = np.arange(share.shape[1]), tables.problem.hot
    total = np.zeros(len(pods))
    for error, weight in SCENARIOS:
        shifted = share + np.float32(error) * margin
        worst = shifted.argmax(axis=0)  # (n_slots,)
        highest = shifted[worst, slots]
        if highest.max() <= 0:
            continue
        lost = penalty(highest, limit) - penalty(highest - usage[:, worst, slots], limit)  # (n_pods, n_slots)
        total += weight * lost.sum(axis=1, dtype=np.float64)
    return total


def _solve(tables: PlanTables, hot: Ints, pods: Ints, gains: Floats, price: Floats) -> float:
    from scipy.optimize import linprog  # half a second, which only a cluster with hot nodes pays
    from scipy.sparse import coo_array

    columns, n_pods, n_hot = tables.problem.pods, len(pods), len(hot)
    node = np.searchsorted(hot, columns.node[pods])
    groups = [
        (np.zeros(n_pods, dtype=np.int64), np.array([tables.left])),
        _group(columns.service[pods], tables.left_of_service),
        _group(columns.namespace[pods], tables.left_of_namespace),
        _group(columns.node[pods], tables.left_away),
    ]
    rows, starts, limits = [], n_hot, [np.zeros(n_hot)]
    for of_pod, left in groups:
        rows.append(of_pod + starts)
        limits.append(np.maximum(left, 0).astype(np.float64))
        starts += len(left)
    # Columns: y of pods, then z of nodes. Rows: z - sum a y <= 0 per node, then the budgets.
    every = np.arange(n_pods)
    row = np.concatenate([node, *rows, np.arange(n_hot)])
    column = np.concatenate([every, *[every] * len(rows), n_pods + np.arange(n_hot)])
    value = np.concatenate([-gains, np.ones(n_pods * len(rows)), np.ones(n_hot)])
    matrix = coo_array((value, (row, column)), shape=(starts, n_pods + n_hot)).tocsr()
    upper = np.concatenate([np.ones(n_pods), tables.heat[hot]])
    answer = linprog(
        np.concatenate([price, -np.ones(n_hot)]),
        A_ub=matrix,
        b_ub=np.concatenate(limits),
        bounds=np.column_stack([np.zeros_like(upper), upper]),
        method="highs",
    )
    if answer.status != 0:  # the heat itself is a bound, too
        return float(tables.heat.sum())
    return float(min(-answer.fun, tables.heat.sum())) * (1 + ROUNDING)


def _group(of_pod: Ints, left: Ints) -> tuple[Ints, Ints]:
    """Return rows of the groups that occur, and what is left of each."""
    found, rows = np.unique(of_pod, return_inverse=True)
    return rows, left[found]


def finished_plan(draft: Draft, most_gain: float) -> Plan:
    """Return the plan. Undoes the steps of the draft, and makes them once more in order."""
    tables, steps = draft.tables, list(draft.steps)
    for position in reversed(range(len(steps))):
        draft.take_out(position)
    problem = tables.problem
    ends = [(pod, int(problem.pods.node[pod]), target) for step in steps for pod, target in step.moves]
    touched = np.unique(np.array([node for _, *both in ends for node in both], dtype=np.int64))
    # A node without heat has no half hour at risk, so that the others are all that count.
    others = np.setdiff1d(np.flatnonzero(tables.heat > 0), touched)
    load = problem.load[touched].astype(np.float64)
    before, rest = _figures(tables, touched, load), _figures(tables, others, problem.load[others])
    moves: list[Move] = []
    for step in steps:
        moves += _moves(tables, step, len(moves))
    for pod, *both in ends:
        source, target = np.searchsorted(touched, both)
        usage = problem.usage[problem.pods.profile[pod]]
        load[source] -= usage
        load[target] += usage
    after = _figures(tables, touched, load)
    return Plan(
        moves=tuple(moves),
        hot_before=int(rest[0] + before[0]),
        hot_after=int(rest[0] + after[0]),
        at_risk_before=int(rest[1] + before[1]),
        at_risk_after=int(rest[1] + after[1]),
        heat_before=float(rest[2] + before[2]),
        heat_after=float(rest[2] + after[2]),
        most_gain=most_gain,
    )


def _figures(tables: PlanTables, rows: Ints, load: AnyFloats) -> Floats:
    """Hot half hours, those at risk, heat: (3,)."""
    hot = tables.resources[: tables.n_hot]
    total, limit = np.zeros(3), tables.problem.hot
    for part in (slice(start, start + 256) for start in range(0, len(rows), 256)):
        capacity = tables.problem.capacity[rows[part]][:, hot, None]
        share = np.where(np.isnan(capacity), 0.0, load[part][:, hot] / capacity)
        margin = np.where(np.isnan(capacity), 0.0, tables.problem.margin[rows[part]][:, hot] / capacity)
        half_hours = (hot_half_hours(one, limit) for one in (share, share + margin))
        total += *half_hours, node_heat(share, margin, limit).sum()
    return total


def _moves(tables: PlanTables, step: DraftStep, position: int) -> list[Move]:
    """Make a step, and say what each of its moves does."""
    sources = [int(tables.node_of[pod]) for pod, _ in step.moves]
    rows = np.unique([*sources, *(target for _, target in step.moves)])
    heat, heat_of = float(tables.heat[rows].sum()), tables.heat[sources].copy()
    shares = tables.share[sources, : tables.n_hot].copy()
    for pod, target in step.moves:
        tables.make(pod, target)
    gain = (heat - float(tables.heat[rows].sum())) / len(step.moves)
    moves = []
    for i, (pod, target) in enumerate(step.moves):
        partner = _partner(step, sources, i)
        if tables.heat[sources[i]] < heat_of[i]:
            relief = _relief(tables, shares[i], sources[i], target)
            reason = relief.sentence(f"node {sources[i]}", f"node {target}")
        else:
            relief, reason = None, f"makes room on node {sources[i]} for pod {step.moves[partner or 0][0]}"
        moves.append(
            Move(pod, sources[i], target, gain, reason, None if partner is None else position + partner, relief)
        )
    return moves


def _partner(step: DraftStep, sources: list[int], i: int) -> int | None:
    """Return the position in the step of the pod that comes where this one leaves; if none comes, of the one before."""
    if len(step.moves) == 1:
        return None
    for j, (_, target) in enumerate(step.moves):
        if target == sources[i]:
            return j
    return (i - 1) % len(step.moves)


def _relief(tables: PlanTables, before: Floats32, source: int, target: int) -> MoveReason:
    """Where the source loses most.

    before : (n_hot_resources, n_slots) share of capacity of the source before the step
    """
    after = tables.share[source, : tables.n_hot]
    bound, limit = tables.margin[source, : tables.n_hot], tables.problem.hot
    lost = penalty(before, limit) - penalty(after, limit)
    lost += penalty(before + bound, limit) - penalty(after + bound, limit)
    resource, slot = np.unravel_index(int(lost.argmax()), lost.shape)
    return MoveReason(
        resource=RESOURCES[tables.resources[resource]].name,
        slot=int(slot),
        source_share=float(before[resource, slot]),
        source_bound=float(before[resource, slot] + bound[resource, slot]),
        target_share=float(tables.share[target, resource].max()),
    )


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
