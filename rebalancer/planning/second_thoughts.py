"""Take a part of the plan back, make what is best without it, and keep whichever is worth more (ruin and recreate).

First each step alone, the latest first. Then several at random, with some pods left out of sight, so that the search
does not return to where it was: Schrimpf et al., "Record breaking optimization results using the ruin and recreate
principle" (2000). The generator starts from the same seed, and effort is counted, not timed: a problem has one plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from base.arrays import Bools, Floats
from rebalancer.planning.chains import make_chains
from rebalancer.planning.options import PlanningOptions
from rebalancer.planning.pairs import make_pairs
from rebalancer.planning.singles import make_single_moves
from rebalancer.planning.steps import NOISE, Draft, Step
from rebalancer.planning.tables import CALL

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
    in_turn: list[Step] = list(draft.steps)
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
    return options.replace(
        exchanges_looked_at=options.exchanges_looked_at // HASTE, chains_looked_at=options.chains_looked_at // HASTE
    )


def _try_at_random(draft: Draft, rng: np.random.Generator) -> bool:
    n, tables = len(draft.steps), draft.tables
    taken = [draft.steps[i] for i in rng.permutation(n)[: rng.integers(0, n + 1)]]
    refused = {move for step in taken for move in step.moves if rng.random() < 0.5}
    movable = tables.movable.copy()
    hidden = rng.random(len(movable)) < OUT_OF_SIGHT
    aversion = rng.exponential(AVERSION * float(tables.heat.max()) + NOISE, len(movable))
    tables.movable &= ~hidden
    try:
        first = (None, make_pairs, make_chains)[rng.integers(3)]
        return _replaced(draft, taken, refused, (movable, aversion), first=first)
    finally:
        tables.movable, draft.aversion = movable, 0.0


def _replaced(
    draft: Draft,
    taken: list[Step],
    refused: set[tuple[int, int]],
    blinkers: tuple[Bools, Floats] | None = None,
    *,
    first: Callable[[Draft], bool] | None = None,
) -> bool:
    """Whether something better was found in place of the steps. If not, the draft is as it was.

    refused : moves that may not be made again at once
    blinkers : pods that may move in the end, some of which are out of sight at first, and the aversion at first
    """
    draft.tables.effort += 10 * CALL
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
        draft.tables.movable = blinkers[0]
        make_best_steps(draft)
    if in_order and draft.worth() > before + NOISE:
        return True
    draft.restore(steps)
    return False
