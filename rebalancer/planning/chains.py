"""A pod leaves a hot node for a target that is too full for it, and up to three others make room there.

Pairs find one that makes room, looking at all at once. Here the move is made first, against the limits, and then
repaired: the pod that brings the target nearest to its limits leaves it for its own best node, until all limits hold or
none helps (an ejection chain: Glover, 1996).
"""

from __future__ import annotations

import numpy as np

from base.arrays import Floats
from rebalancer.planning.pairs import Group, likely_targets, pods_that_may_leave
from rebalancer.planning.problem import Problem
from rebalancer.planning.steps import Draft, Step
from rebalancer.planning.tables import PlanTables, fits

LONGEST = 4
"""Moves in a chain."""

URGENT = 1e3
"""Node half hours that a limit weighs while it does not hold: more than any relief within one step."""


def make_chains(draft: Draft) -> bool:
    """Make the best chain of each hot node, the hottest first. Return whether any was made."""
    tables, made = draft.tables, False
    hot = np.flatnonzero(tables.heat > 0)
    for node in hot[np.argsort(-tables.heat[hot], kind="stable")].tolist():
        if tables.left < 2:
            break
        best = best_chain(draft, node)
        if best is not None and draft.make(best.step):
            made = True
    return made


def best_chain(draft: Draft, node: int) -> Group | None:
    """Return the chain that is worth most for a hot node; None if none is worth anything."""
    pods = pods_that_may_leave(draft.tables, node)
    relief = draft.relief(node, pods) - draft.price(pods)
    best: Group | None = None
    looked_at = 0
    for i in np.argsort(-relief, kind="stable").tolist():
        if relief[i] <= (best.worth if best else 0.0):
            break  # what leaves the other nodes of a chain comes to others, so that this is about all it can be worth
        for target in likely_targets(draft, int(pods[i])):
            looked_at += 1
            if looked_at > draft.options.chains_looked_at:
                return best
            found = _chain(draft, int(pods[i]), target)
            if found is not None and (best is None or found.worth > best.worth):
                best = found
    return best


def _chain(draft: Draft, pod: int, target: int) -> Group | None:
    tables = draft.tables
    free = tables.free.copy()
    heat = float(tables.heat.sum())
    moves = [(pod, target)]
    waits = _waiting_for(draft, pod, target)
    draft.finder.refused |= waits
    tables.make(pod, target)
    while len(moves) < LONGEST and tables.left > 0 and _passes_limits(tables, target, pod):
        following = _who_makes_room(draft, target, pod)
        if following is None:
            break
        tables.make(*following)
        moves.append(following)
    draft.finder.refused -= waits
    holds = len(moves) > 1 and not _passes_limits(tables, target, pod)
    worth = heat - float(tables.heat.sum()) - float(draft.price(np.array([pod for pod, _ in moves])).sum())
    for one, _ in reversed(moves):
        tables.move_back(one)
    if not holds or worth <= 0:
        return None
    ordered = in_order(tables.problem, moves, free)
    return None if ordered is None else Group(worth, Step(ordered))


def _waiting_for(draft: Draft, pod: int, target: int) -> set[tuple[int, int]]:
    """Moves back to where the pod comes from that have no room until it has left, for it waits for them."""
    tables = draft.tables
    source, others = int(tables.node_of[pod]), tables.pods_on(target)
    blocked = others[~fits(tables.free[source], tables.problem.pods.requests[others])]
    return {(other, source) for other in blocked.tolist()} - draft.finder.refused


def _passes_limits(tables: PlanTables, node: int, newcomer: int) -> bool:
    """Whether a node has taken more than requests or its ceiling allow."""
    requests = tables.problem.pods.requests[newcomer]
    return bool(not fits(tables.free[node] + requests, requests) or (tables.share[node] > tables.ceiling[node]).any())


def _who_makes_room(draft: Draft, target: int, newcomer: int) -> tuple[int, int] | None:
    tables = draft.tables
    others = pods_that_may_leave(tables, target)
    others = others[others != newcomer]
    if not len(others):
        return None
    missing = np.maximum(-tables.free[target], 0)  # (n_requests,)
    requests = tables.problem.pods.requests[others]
    covered = np.where(missing > 0, np.minimum(requests, missing) / np.where(missing > 0, missing, 1), 1).mean(axis=1)
    without = tables.share[target] - tables.usage(others) * tables.inverse[target][:, None]
    over = np.maximum(without - tables.ceiling[target], 0).max(axis=(1, 2))  # (n_others,)
    now = max(float(np.maximum(tables.share[target] - tables.ceiling[target], 0).max()), 1e-9)
    covered = covered + np.where(now > 1e-9, 1 - over / now, 0)
    score = URGENT * covered + draft.relief(target, others) - draft.price(others)
    for i in np.argsort(-score, kind="stable")[:3].tolist():
        found = draft.finder.best(int(others[i]))
        if found is not None and found.node != target:
            return int(others[i]), found.node
    return None


def in_order(problem: Problem, moves: list[tuple[int, int]], free: Floats) -> tuple[tuple[int, int], ...] | None:
    """Return the moves so that each finds room at its turn; None if there is no such order."""
    pods, ordered, left = problem.pods, [], list(moves)
    while left:
        for pod, target in reversed(left):
            if fits(free[target], pods.requests[pod]):
                break
        else:
            return None
        free[target] -= pods.requests[pod]
        free[pods.node[pod]] += pods.requests[pod]
        left.remove((pod, target))
        ordered.append((pod, target))
    return tuple(ordered)
