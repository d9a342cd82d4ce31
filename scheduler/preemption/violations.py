"""Which pods' eviction would violate a PodDisruptionBudget, for many nodes at once.

Node by node the pods that may go are disrupted in their order; a pod that finds its budget used up violates it
(filterPodsWithPDBViolation). Whether they will really be evicted is not known yet.
"""

from __future__ import annotations

import numpy as np

from base.arrays import Bools, Ints
from placement.disruption_budgets import DisruptionBudgets
from scheduler.preemption.sitting_pods import NONE, SEVERAL, SittingPods

_MOST_CELLS = 2**23


def violating(slots: Ints, may_go: Bools, sitting: SittingPods, budgets: DisruptionBudgets) -> Bools | None:
    """
    slots, may_go : (n_most, n_nodes) pods of each node, the most important first, and who of them may go

    Returns (n_most, n_nodes), or None if no eviction violates anything.
    """
    if not len(budgets):
        return None
    budget = np.where(may_go, _counted(sitting, budgets)[slots], NONE)
    if (budget == NONE).all():
        return None
    allowed = np.array(budgets.allowed(), dtype=np.int64)
    is_single = budget >= 0
    left = np.where(is_single, allowed[budget], 1)
    found = left <= 0
    found |= _used_up(is_single & (left > 0), budget, allowed)
    for column in np.flatnonzero((budget == SEVERAL).any(axis=0)).tolist():
        here = may_go[:, column]
        found[here, column] = budgets.violated_by(sitting.at(slots[here, column]))
    return found if found.any() else None


def _counted(sitting: SittingPods, budgets: DisruptionBudgets) -> Ints:
    """(n_slots,) or more: the budget of each pod, NONE for those whose eviction it reckons with already."""
    disrupted = budgets.disrupted()
    if not disrupted:
        return sitting.budget
    counted = sitting.budget.copy()
    for number, namespace, name in disrupted:
        slot = sitting.slot_named(namespace, name)
        if slot is not None and counted[slot] == number:
            counted[slot] = NONE
    return counted


def _used_up(asked: Bools, budget: Ints, allowed: Ints) -> Bools:
    """(n_most, n_nodes) pods before which as many of the same budget and node come as it allows."""
    found = np.zeros(asked.shape, dtype=bool)
    place, column = np.nonzero(asked)  # in the order of importance
    numbers = budget[place, column]
    cells = column * len(allowed) + numbers  # a budget on a node
    n_cells = asked.shape[1] * len(allowed)
    if n_cells <= _MOST_CELLS:
        # Few budgets have more pods on one node than they allow: only these need a closer look.
        many = np.bincount(cells, minlength=n_cells)[cells] > allowed[numbers]
        place, column, numbers, cells = place[many], column[many], numbers[many], cells[many]
    if not len(cells):
        return found
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    begins = np.r_[True, ordered[1:] != ordered[:-1]]
    starts = np.flatnonzero(begins)
    rank = np.arange(len(ordered)) - starts[np.cumsum(begins) - 1]
    late = order[rank >= allowed[numbers[order]]]
    found[place[late], column[late]] = True
    return found
