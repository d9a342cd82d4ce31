"""How much heat any plan within the budget could prevent: an upper bound, from a linear programme.

A pod that arrives never cools a node. So a plan gains at most what nodes lose by the pods that leave them, targets and
their room left aside. Let r be the worst resource of a node in a slot before any move. As the penalty is convex,

    penalty(max_r x) - penalty(max_r x - u_r) <= sum_pods [penalty(x_r) - penalty(x_r - u_pod,r)],

and all nodes together lose at most

    max sum_n z_n    z_n <= heat_n,   z_n <= sum_pods a_pod y_pod,   0 <= y <= 1,
                     sum y <= total, and by service, namespace and node,

where y says how much of a pod leaves and a is the sum of the right side over the slots and scenarios of heat.py.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from rebalancer.planning.heat import SCENARIOS, penalty
from rebalancer.planning.tables import PlanTables

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
    slots = np.arange(share.shape[1])
    total = np.zeros(len(pods))
    for error, weight in SCENARIOS:
        shifted = share + np.float32(error) * margin
        worst = shifted.argmax(axis=0)  # (n_slots,)
        highest = shifted[worst, slots]
        if highest.max() <= 0:
            continue
        lost = penalty(highest) - penalty(highest - usage[:, worst, slots])  # (n_pods, n_slots)
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
