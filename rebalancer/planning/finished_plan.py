"""A draft as a Plan: every move with its gain at its turn and its reason, the figures in double precision."""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Floats, Floats32, Ints
from forecast.resources import RESOURCES
from rebalancer.planning.heat import hot_half_hours, node_heat, penalty
from rebalancer.planning.problem import Move, Plan, Relief
from rebalancer.planning.steps import Draft, Step
from rebalancer.planning.tables import PlanTables


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
    total = np.zeros(3)
    for part in (slice(start, start + 256) for start in range(0, len(rows), 256)):
        capacity = tables.problem.capacity[rows[part]][:, hot, None]
        share = np.where(np.isnan(capacity), 0.0, load[part][:, hot] / capacity)
        margin = np.where(np.isnan(capacity), 0.0, tables.problem.margin[rows[part]][:, hot] / capacity)
        total += hot_half_hours(share), hot_half_hours(share + margin), node_heat(share, margin).sum()
    return total


def _moves(tables: PlanTables, step: Step, position: int) -> list[Move]:
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


def _partner(step: Step, sources: list[int], i: int) -> int | None:
    """Return the position in the step of the pod that comes where this one leaves; if none comes, of the one before."""
    if len(step.moves) == 1:
        return None
    for j, (_, target) in enumerate(step.moves):
        if target == sources[i]:
            return j
    return (i - 1) % len(step.moves)


def _relief(tables: PlanTables, before: Floats32, source: int, target: int) -> Relief:
    """Where the source loses most.

    before : (n_hot_resources, n_slots) share of capacity of the source before the step
    """
    after = tables.share[source, : tables.n_hot]
    bound = tables.margin[source, : tables.n_hot]
    lost = penalty(before) - penalty(after) + (penalty(before + bound) - penalty(after + bound))
    resource, slot = np.unravel_index(int(lost.argmax()), lost.shape)
    return Relief(
        resource=RESOURCES[tables.resources[resource]].name,
        slot=int(slot),
        source_share=float(before[resource, slot]),
        source_bound=float(before[resource, slot] + bound[resource, slot]),
        target_share=float(tables.share[target, resource].max()),
    )
