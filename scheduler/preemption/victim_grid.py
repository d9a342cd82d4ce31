"""Pods that may be evicted from each of some nodes, side by side: one column per node, the most important pods first.

Everything about requests is decided here for all nodes at once, without trying them one by one:

    who may go at all  --cumulative requests-->  first pod that cannot stay  =  bound on the highest victim priority
    reprieve           --place by place------->  victims of all nodes together

Which pods' eviction would violate a PodDisruptionBudget, for many nodes at once.

Node by node the pods that may go are disrupted in their order; a pod that finds its budget used up violates it
(filterPodsWithPDBViolation). Whether they will really be evicted is not known yet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Floats, Ints
from placement.disruption_budgets import DisruptionBudgets
from placement.pod_importance import PRIORITY_OFFSET, Cost
from scheduler.preemption.releasable_room import ReleasableRoom
from scheduler.preemption.sitting_pods import NONE, SEVERAL, SittingPods

# Which pods' eviction would violate a PodDisruptionBudget, for many nodes at once.
#
# Node by node the pods that may go are disrupted in their order; a pod that finds its budget used up violates it
# (filterPodsWithPDBViolation). Whether they will really be evicted is not known yet.

_MOST_CELLS = 2**23

_LOWEST = -(2**40)


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


@dataclass(frozen=True, slots=True)
class EvictionCosts:
    """Cost of emptying each node, (n_nodes,) each, see importance.Cost."""

    violations: Ints
    highest: Ints
    sum_priorities: Ints
    n_victims: Ints
    minus_start: Floats
    row: Ints

    def at(self, position: int) -> Cost:
        return Cost(
            int(self.violations[position]),
            int(self.highest[position]),
            int(self.sum_priorities[position]),
            int(self.n_victims[position]),
            float(self.minus_start[position]),
            int(self.row[position]),
        )

    def least(self, among: Ints) -> int:
        """The position of the least cost among some, at least one."""
        for values in (self.violations, self.highest, self.sum_priorities, self.n_victims, self.minus_start, self.row):
            found = values[among]
            among = among[found == found.min()]
            if len(among) == 1:
                break
        return int(among[0])


@dataclass(frozen=True, slots=True)
class Grid:
    """Nodes on which the pod fits once all that may go are gone.

    rows    : (n_nodes,) ascending
    slots   : (n_most, n_nodes) of the pods there; any value where may_go is false
    may_go  : (n_most, n_nodes)
    spare   : (n_limits, n_nodes) what may stay with those that may go, >= 0
    bound   : (n_nodes,) no victims have a lower highest standing than this; that of the least important who may go
              where requests need no victim
    """

    sitting: SittingPods
    gives: tuple[Ints, ...]
    rows: Ints
    slots: Ints
    may_go: Bools
    spare: Ints
    bound: Ints

    @classmethod
    def of(cls, rows: Ints, may_go: Bools, room: ReleasableRoom, sitting: SittingPods) -> Grid:
        """may_go: (n_slots,) pods that may be evicted."""
        rows = rows[(rows < len(sitting.order))]
        rows = rows[sitting.n_on[rows] > 0]
        width = int(sitting.n_on[rows].max(initial=0))
        slots = np.ascontiguousarray(sitting.order[rows, :width].T)  # (n_most, n_nodes)
        goes = (slots >= 0) & may_go[slots] if width else np.zeros(slots.shape, dtype=bool)
        given = [np.where(goes, gives[slots], 0) for gives in room.gives]
        spare = room.left[:, rows] + np.array([each.sum(axis=0) for each in given]).reshape(len(given), len(rows))
        fits = goes.any(axis=0) & (spare >= 0).all(axis=0)
        chosen = np.flatnonzero(fits)
        rows, slots, goes, spare = rows[chosen], slots[:, chosen], goes[:, chosen], spare[:, chosen]
        standing = sitting.standing[slots]
        bound = np.where(goes, standing, 2**40).min(axis=0, initial=2**40)
        over = np.zeros(slots.shape, dtype=bool)
        for each, limit in zip(given, spare, strict=True):
            over |= np.cumsum(each[:, chosen], axis=0) > limit
        if over.size:
            needs = over.any(axis=0)
            first = over.argmax(axis=0)
            bound = np.where(needs, standing[first, np.arange(len(rows))], bound)
        return cls(sitting, room.gives, rows, slots, goes, spare, bound)

    def part(self, positions: Ints) -> Grid:
        """Some of the nodes."""
        return Grid(
            self.sitting,
            self.gives,
            self.rows[positions],
            self.slots[:, positions],
            self.may_go[:, positions],
            self.spare[:, positions],
            self.bound[positions],
        )

    def violating(self, budgets: DisruptionBudgets) -> Bools | None:
        """Return the pods whose eviction violates a budget if all more important ones go, (n_most, n_nodes); None = no
        pod's.
        """
        return violating(self.slots, self.may_go, self.sitting, budgets)

    def reprieve(self, violating: Bools | None) -> tuple[Ints, Bools, EvictionCosts]:
        """Find the victims: every pod that may stay does, the violating first, then the most important.

        Returns (n_most, n_nodes) slots in the order of reprieve, which of them are victims, and the cost. A node
        without victims costs nothing.
        """
        slots, may_go = self.slots, self.may_go
        if violating is not None:
            order = np.argsort(~violating, axis=0, kind="stable")
            slots, may_go = np.take_along_axis(slots, order, axis=0), np.take_along_axis(may_go, order, axis=0)
            violating = np.take_along_axis(violating, order, axis=0)
        given = [np.where(may_go, gives[slots], 0) for gives in self.gives]
        stays = self._stay_at_first(given)
        victims = np.zeros(slots.shape, dtype=bool)
        left = [limit - np.where(stays, each, 0).sum(axis=0) for each, limit in zip(given, self.spare, strict=True)]
        undecided = may_go & ~stays
        begin = int(undecided.any(axis=1).argmax()) if undecided.any() else len(slots)
        for place in range(begin, len(slots)):
            asks = undecided[place]
            may_stay = asks.copy()
            for each, limit in zip(given, left, strict=True):
                may_stay &= each[place] <= limit
            for each, limit in zip(given, left, strict=True):
                limit -= np.where(may_stay, each[place], 0)
            victims[place] = asks & ~may_stay
        return slots, victims, self._costs(slots, victims, violating)

    def _stay_at_first(self, given: list[Ints]) -> Bools:
        """Return all pods before the first that cannot stay, (n_most, n_nodes)."""
        stays = np.ones(self.slots.shape, dtype=bool)
        for each, limit in zip(given, self.spare, strict=True):
            stays &= np.cumsum(each, axis=0) <= limit
        return stays

    def _costs(self, slots: Ints, victims: Bools, violating: Bools | None) -> EvictionCosts:
        standing = self.sitting.standing[slots]
        highest = np.where(victims, standing, _LOWEST).max(axis=0, initial=_LOWEST)
        started = np.where(victims & (standing == highest), self.sitting.started[slots], np.inf)
        n_nodes = len(self.rows)
        return EvictionCosts(
            violations=np.zeros(n_nodes, dtype=np.int64) if violating is None else (victims & violating).sum(axis=0),
            highest=highest,
            sum_priorities=np.where(victims, standing + PRIORITY_OFFSET, 0).sum(axis=0),
            n_victims=victims.sum(axis=0),
            minus_start=-started.min(axis=0, initial=np.inf),
            row=self.rows,
        )
