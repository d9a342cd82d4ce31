"""Single moves, the best first; then take a part of the plan back, make what is best without it, and keep whichever is
worth more (ruin and recreate).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from base.arrays import Bools, Floats
from rebalancer.planning.draft_steps import NOISE, Draft, DraftStep
from rebalancer.planning.draft_tables import CALL
from rebalancer.planning.joint_moves import make_chains, make_pairs
from rebalancer.rebalance_settings import PlanningOptions

# Single moves, the best first.
#
# A move away from a node helps less, the more has left it already, and a target costs more, the more it has taken. So
# what was found for a pod is at most too high, and the pod at the head of the heap is looked at anew only if its nodes
# have changed (the lazy greedy of Minoux, 1978).

_Entry = tuple[float, int, int, int]
"""Minus what the move is worth at most, pod, target or -1 if none was looked for, how often both nodes had changed."""

CLOSE_ENOUGH: Final = 0.98
"""Share of what any plan could gain from which on nothing is taken back."""

OUT_OF_SIGHT: Final = 0.2
"""Share of the pods that a random trial leaves where they are."""

AVERSION: Final = 0.1
"""Mean of what it raises the price of a pod by, as share of the heat of the hottest node."""

HASTE: Final = 8
"""A trial looks at one in so many of the pairs and chains that the plan itself looks at."""

PATIENCE: Final = 150
"""Trials in a row that find nothing better before the search ends."""

MILLION: Final = 1e6


def make_single_moves(draft: Draft) -> None:
    """Make moves as long as one is worth it."""
    while _one_pass(draft):
        pass


def _one_pass(draft: Draft) -> bool:
    """Whether any move was made. Another pass finds what has become possible by nodes that cooled down."""
    tables, made = draft.tables, False
    heap: list[_Entry] = []
    for node in np.flatnonzero(tables.heat > 0).tolist():
        heap += _entries(draft, node)
    heapq.heapify(heap)
    while heap and tables.left > 0:
        _, pod, target, stamp = heapq.heappop(heap)
        if not tables.may_leave(pod):
            continue
        source = int(tables.node_of[pod])
        current = target >= 0 and stamp == tables.changed[source] + tables.changed[target]
        if current and draft.make(DraftStep(((pod, target),))):
            made = True
            if tables.heat[target] > 0:
                for entry in _entries(draft, target):
                    heapq.heappush(heap, entry)
            continue
        found = _looked_at(draft, pod)
        if found is not None:
            heapq.heappush(heap, found)
    return made


def _entries(draft: Draft, node: int) -> list[_Entry]:
    """Pods whose leaving relieves the node by more than it costs."""
    pods = draft.tables.pods_on(node)
    worth = draft.relief(node, pods) - draft.price(pods)
    return [(-w, pod, -1, 0) for w, pod in zip(worth.tolist(), pods.tolist(), strict=True) if w > 0]


def _looked_at(draft: Draft, pod: int) -> _Entry | None:
    tables = draft.tables
    source = int(tables.node_of[pod])
    alone = np.array([pod])
    worth = float(draft.relief(source, alone)[0] - draft.price(alone)[0])
    if worth <= 0:
        return None
    target = draft.finder.best(pod)
    if target is None or worth <= target.cost:
        return None
    stamp = int(tables.changed[source] + tables.changed[target.node])
    return target.cost - worth, pod, target.node, stamp


def make_best_steps(draft: Draft, first: Callable[[Draft], bool] | None = None) -> None:
    """Make single moves, pairs and chains until none is worth it; one kind before the others if it is named."""
    if first is not None:
        first(draft)
    make_single_moves(draft)
    while make_pairs(draft) or make_chains(draft):
        make_single_moves(draft)


def improve(draft: Draft, heat_before: float, most_worth: float) -> None:
    """Try to do better until that takes more effort than the options allow, or there is hardly anything left to find.

    most_worth : node half hours of heat less prices that no plan exceeds
    """
    limit = draft.options.improvement_effort * MILLION
    tables = draft.tables
    if tables.effort > limit / 4:
        return  # a single trial may take as long as the whole plan
    limit += tables.effort
    rng = np.random.default_rng(0)
    draft.options = _hasty(draft.options)
    in_turn: list[DraftStep] = list(draft.steps)
    in_vain = 0
    while tables.effort < limit and in_vain < PATIENCE and heat_before + draft.worth() < CLOSE_ENOUGH * most_worth:
        in_vain += 1
        if in_turn:
            step = in_turn.pop()
            if step in draft.steps and _replaced(draft, [step], set(step.moves)):
                in_turn, in_vain = list(draft.steps), 0
        elif _try_at_random(draft, rng):
            in_vain = 0


def _hasty(options: PlanningOptions) -> PlanningOptions:
    """Many trials that look at little find more than a few that look at all."""
    return replace(
        options,
        exchanges_looked_at=options.exchanges_looked_at // HASTE,
        chains_looked_at=options.chains_looked_at // HASTE,
    )


def _try_at_random(draft: Draft, rng: np.random.Generator) -> bool:
    n, tables = len(draft.steps), draft.tables
    taken = [draft.steps[i] for i in rng.permutation(n)[: rng.integers(0, n + 1)]]
    refused = {move for step in taken for move in step.moves if rng.random() < 0.5}
    movable = tables.movable
    hidden = rng.random(len(movable)) < OUT_OF_SIGHT
    aversion = rng.exponential(AVERSION * float(tables.heat.max()) + NOISE, len(movable))
    tables.look_at(movable & ~hidden)
    try:
        first = (None, make_pairs, make_chains)[rng.integers(3)]
        return _replaced(draft, taken, refused, (movable, aversion), first=first)
    finally:
        tables.look_at(movable)
        draft.aversion = 0.0


def _replaced(
    draft: Draft,
    taken: list[DraftStep],
    refused: set[tuple[int, int]],
    blinkers: tuple[Bools, Floats] | None = None,
    *,
    first: Callable[[Draft], bool] | None = None,
) -> bool:
    """Whether something better was found in place of the steps. If not, the draft is as it was.

    refused : moves that may not be made again at once
    blinkers : pods that may move in the end, some of which are out of sight at first, and the aversion at first
    """
    draft.tables.spend(10 * CALL)
    before, steps = draft.worth(), list(draft.steps)
    for step in taken:
        draft.take_out(draft.steps.index(step))
    refused = refused - draft.finder.refused
    draft.finder.refused |= refused
    in_order = draft.in_order()
    if in_order:
        draft.aversion = blinkers[1] if blinkers else 0.0
        make_best_steps(draft, first)
    draft.finder.refused -= refused
    draft.aversion = 0.0
    if in_order and blinkers is not None:
        draft.tables.look_at(blinkers[0])
        make_best_steps(draft)
    if in_order and draft.worth() > before + NOISE:
        return True
    draft.restore(steps)
    return False
