"""Moves that are worth it only together: two where single moves leave a node hot, and chains in which up to three pods
make room on the target.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from base.arrays import Floats, Floats32, Ints
from rebalancer.planning.draft_steps import Draft, DraftStep
from rebalancer.planning.draft_tables import PlanTables, fits
from rebalancer.planning.heat import node_heat
from rebalancer.planning.problem import Problem
from rebalancer.planning.targets import nearest

ROOM_MAKERS = 8
"""Pods for which a third node is looked for, the most promising of a hot node."""

_Room = tuple[float, int, int, int]
"""What it is worth at most if a pod moves to a target that another pod leaves: worth, pod, target, other pod."""

LONGEST = 4
"""Moves in a chain."""

URGENT = 1e3
"""Node half hours that a limit weighs while it does not hold: more than any relief within one step."""


@dataclass(frozen=True, slots=True)
class StepGroup:
    """A step of several moves, and what it is worth beyond its price."""

    worth: float
    step: DraftStep


def make_pairs(draft: Draft) -> bool:
    """Make pairs as long as one is worth it, the best first. Return whether any was made."""
    if not draft.options.exchanges_looked_at:
        return False
    tables, made = draft.tables, False
    heap = [(-float(tables.heat[node]), node, -1) for node in np.flatnonzero(tables.heat > 0).tolist()]
    heapq.heapify(heap)
    found: dict[int, StepGroup] = {}
    while heap and tables.left > 1:
        _, node, stamp = heapq.heappop(heap)
        pair = found.get(node)
        if pair is not None and stamp == _stamp(tables, pair.step):
            if draft.make(pair.step):
                made = True
            del found[node]
        best = best_pair(draft, node)
        if best is not None:
            found[node] = best
            heapq.heappush(heap, (-best.worth, node, _stamp(tables, best.step)))
    return made


def _stamp(tables: PlanTables, step: DraftStep) -> int:
    pods = [pod for pod, _ in step.moves]
    return int(sum(tables.changed[tables.problem.pods.node[pod]] for pod in pods)) + int(
        sum(tables.changed[target] for _, target in step.moves)
    )


def best_pair(draft: Draft, node: int) -> StepGroup | None:
    """Return the pair that is worth most for a hot node; None if none is worth anything."""
    tables = draft.tables
    pods = pods_that_may_leave(tables, node)
    if not len(pods):
        return None
    relief = draft.relief(node, pods) - draft.price(pods)
    best: StepGroup | None = None
    room: list[_Room] = []
    looked_at = 0
    for i in np.argsort(-relief, kind="stable").tolist():
        enough = best.worth if best else draft.options.least_gain
        if looked_at >= draft.options.exchanges_looked_at or relief[i] + draft.price(pods[[i]])[0] <= enough:
            break  # what leaves the target relieves it, too, but a pair that is worth it mainly for that begins there
        for target in likely_targets(draft, int(pods[i])):
            # A pod that comes back relieves the target at most by all of its heat.
            if relief[i] + tables.heat[target] <= (best.worth if best else 0.0):
                continue
            if looked_at >= draft.options.exchanges_looked_at:
                break
            looked_at += 1
            exchange, hopes = _exchanges(draft, int(pods[i]), node, target)
            room += hopes
            if exchange is not None and (best is None or exchange.worth > best.worth):
                best = exchange
    for pair in _with_room_made(draft, room, best.worth if best else 0.0):
        if best is None or pair.worth > best.worth:
            best = pair
    return best


def pods_that_may_leave(tables: PlanTables, node: int) -> Ints:
    """Return the pods of a node that the budgets allow to leave."""
    return np.array([pod for pod in tables.pods_on(node).tolist() if tables.may_leave(pod)], dtype=np.int64)


def likely_targets(draft: Draft, pod: int) -> list[int]:
    """Nodes that could take the pod if another left them, the roughly best."""
    tables = draft.tables
    pods = tables.problem.pods
    may = tables.problem.allowed[pods.shape[pod]] & (tables.left_to > 0) & (tables.left_away > 0)
    may[tables.node_of[pod]] = False
    candidates = np.flatnonzero(draft.finder.without_refused(pod, may))
    rough = draft.finder.rough(pod)[candidates]
    chosen: list[int] = nearest(candidates, rough, max(draft.options.targets_looked_at // 2, 1)).tolist()
    return chosen


def _exchanges(draft: Draft, pod: int, node: int, target: int) -> tuple[StepGroup | None, list[_Room]]:
    """Return the best exchange with a pod of the target, and what room there is worth: (worth, pod, target, pod)."""
    tables, problem = draft.tables, draft.tables.problem
    others = np.array([q for q in tables.pods_on(target).tolist() if _both_may_leave(tables, pod, q)], dtype=np.int64)
    pods = problem.pods
    others = others[fits(tables.free[target] + pods.requests[others], pods.requests[pod])]
    if not len(others):
        return None, []
    leaves, comes = tables.usage(pod), tables.usage(others)
    at_target = tables.share[target] + (leaves - comes) * tables.inverse[target][:, None]
    heat_at_target = _heat(tables, target, at_target)
    price = draft.price(others) + float(draft.price(np.array([pod]))[0])
    before = tables.heat[node] + tables.heat[target]

    without = tables.share[node] - leaves * tables.inverse[node][:, None]
    hope = before - _heat(tables, node, without[None])[0] - heat_at_target - price
    hopes = [(float(hope[i]), pod, target, int(others[i])) for i in np.flatnonzero(hope > 0).tolist()]

    at_node = without + comes * tables.inverse[node][:, None]
    worth = before - _heat(tables, node, at_node) - heat_at_target - price
    back = problem.allowed[pods.shape[others], node] & (tables.left_to[node] > 0) & (tables.left_away[node] > 0)
    back &= fits(tables.free[node] + pods.requests[pod], pods.requests[others])
    first = fits(tables.free[target], pods.requests[pod])  # whether the large one fits before the small one leaves
    back &= first | fits(tables.free[node], pods.requests[others])
    for i, q in enumerate(others.tolist()):
        back[i] &= (q, node) not in draft.finder.refused
    worth[~back] = -np.inf
    i = int(np.argmax(worth))
    if worth[i] <= 0:
        return None, hopes
    moves = ((pod, target), (int(others[i]), node))
    return StepGroup(float(worth[i]), DraftStep(moves if bool(first) else moves[::-1])), hopes


def _both_may_leave(tables: PlanTables, pod: int, other: int) -> bool:
    pods = tables.problem.pods
    if not tables.may_leave(other):
        return False
    if pods.service[pod] == pods.service[other] and tables.left_of_service[pods.service[pod]] < 2:
        return False
    return bool(pods.namespace[pod] != pods.namespace[other] or tables.left_of_namespace[pods.namespace[pod]] > 1)


def _heat(tables: PlanTables, node: int, share: Floats32) -> Floats:
    """(n,) heat of a node at each of the shares, infinite above its ceiling."""
    margin = np.broadcast_to(tables.margin[node], share.shape)
    heat = node_heat(share[:, : tables.n_hot], margin[:, : tables.n_hot], tables.problem.hot)
    heat[(share > tables.ceiling[node]).any(axis=(1, 2))] = np.inf
    return np.asarray(heat)


def _with_room_made(draft: Draft, room: list[_Room], least: float) -> Iterator[StepGroup]:
    """Find third nodes for the pods that would have to leave."""
    for worth, pod, target, other in heapq.nlargest(ROOM_MAKERS, room):
        if worth <= least:
            return
        third = draft.finder.best(other)
        if third is None or third.node == target or third.node == draft.tables.node_of[pod]:
            continue
        if worth > third.cost:
            yield StepGroup(worth - third.cost, DraftStep(((other, third.node), (pod, target))))


# A pod leaves a hot node for a target that is too full for it, and up to three others make room there.
#
# Pairs find one that makes room, looking at all at once. Here the move is made first, against the limits, and then
# repaired: the pod that brings the target nearest to its limits leaves it for its own best node, until all limits hold
# or none helps (an ejection chain: Glover, 1996).


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


def best_chain(draft: Draft, node: int) -> StepGroup | None:
    """Return the chain that is worth most for a hot node; None if none is worth anything."""
    pods = pods_that_may_leave(draft.tables, node)
    relief = draft.relief(node, pods) - draft.price(pods)
    best: StepGroup | None = None
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


def _chain(draft: Draft, pod: int, target: int) -> StepGroup | None:
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
    return None if ordered is None else StepGroup(worth, DraftStep(ordered))


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
