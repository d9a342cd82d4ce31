"""The node that is emptied at the least cost so that a pod fits.

    nodes where only requests are in the way  --> Grid: all at once, group by group of the same bound
    nodes where something else is, too        --> trials on the tables, one by one, the most promising first

A bound on the highest standing (pod_importance.py: by default the priority) among the victims is known for each node
before any pod is reprieved. Once a node is found without violations of budgets no other one whose bound is higher can
be better: it is not looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.objects import PodInfo
from placement.disruption_budgets import DisruptionBudgets
from placement.filters.filter import ClusterView, Filter, Rejection, rejected
from placement.filters.inter_pod_affinity import as_read
from placement.pod_importance import SYSTEM_CRITICAL, Cost, NodeVictims, cost_of, nothing
from scheduler.loop_settings import PreemptionOptions
from scheduler.preemption.cheapest_nodes import CandidateNodes
from scheduler.preemption.nominated import NominatedPods
from scheduler.preemption.nominated_sums import fit_filter
from scheduler.preemption.releasable_room import CumulatedByPriority, ReleasableRoom, room_for
from scheduler.preemption.sitting_pods import NONE, SittingPods
from scheduler.preemption.victim_gangs import GangsAfter, VictimGangs, broken_gangs
from scheduler.preemption.victim_grid import EvictionCosts, Grid, violating
from scheduler.preemption.victim_trials import Trials
from scheduler.preemption.whole_gangs import OneNode, with_whole_gangs
from tenants.reclaim import Reclaim, UnderWay

_MOST_FORESEEN: Final = 128
"""Nodes of which filters are asked whom they would name; half a millisecond each."""

_BINDING_SECONDS: Final = 1.0
"""After which a pod that borrows and is being bound may be evicted, as a rule."""


@dataclass(frozen=True, slots=True)
class Found:
    """
    victims   : None = evicting pods does not help
    unhelpful : nodes that reject the pod whichever pods are evicted there
    wait_seconds : until the protection of the first protected pod ends; 0 = none is protected
    """

    victims: NodeVictims | None
    unhelpful: int
    wait_seconds: float = 0.0


class VictimSearch:
    """Called under the lock of the tables."""

    def __init__(
        self,
        sitting: SittingPods,
        budgets: DisruptionBudgets,
        nominated: NominatedPods,
        gangs: VictimGangs | None,
        options: PreemptionOptions,
        reclaim: Reclaim | None = None,
    ) -> None:
        """reclaim: which pods go because their tenant borrows; None = there are no tenants"""
        self._sitting, self._budgets, self._nominated = sitting, budgets, nominated
        self._gangs, self._options, self._reclaim = gangs, options, reclaim
        self._cumulated = CumulatedByPriority(sitting)
        self._gone: Sequence[PodInfo] = ()

    def after(self, gone: Sequence[PodInfo], *, counts_budgets: bool = True) -> VictimSearch:
        """The same search once these pods are evicted; they have been taken out of the tables (what_if.py).

        counts_budgets : whether budgets know of it, too
        """
        if not gone:
            return self
        after = copy(self)
        after._gone = gone
        after._budgets = self._budgets.after(gone) if counts_budgets and len(self._budgets) else self._budgets
        after._gangs = None if self._gangs is None else GangsAfter(self._gangs, frozenset(pod.uid for pod in gone))
        return after

    def find(
        self,
        pod: PodInfo,
        view: ClusterView,
        filters: Sequence[Filter],
        rejections: Sequence[Rejection],
        *,
        now: float,
        untouchable: Collection[str] = (),
    ) -> Found:
        """
        rejections  : of all nodes by these filters
        now         : unix seconds
        untouchable : UIDs of pods that are no victims, whatever their priority
        """
        sitting, alive = self._sitting, view.state.alive
        unhelpful = rejected((one for one in rejections if not one.preemptible), view.n_rows)
        other = rejected((one for one in rejections if one.preemptible and not one.by_requests), view.n_rows)
        helped = alive & rejected(rejections, view.n_rows) & ~unhelpful
        n_unhelpful = int((alive & unhelpful).sum())
        if not helped.any():
            return Found(None, n_unhelpful)
        other |= _near_whom_it_wants_to_be(pod, view)
        sitting.settle()
        may_go, wait_seconds = self._may_go(pod, now, untouchable)
        if not may_go.any():
            return Found(None, n_unhelpful, wait_seconds)
        fit = fit_filter(filters)
        room = room_for(pod, view.state, sitting, self._nominated, fit)
        best = None
        rows = np.flatnonzero(helped & ~other & room.lacking)
        if len(rows):
            best = self._by_requests(rows, may_go, pod.priority, room)
        rows = np.flatnonzero(helped & other)
        if len(rows):
            grid = Grid.of(rows, may_go, room, sitting)
            trials = Trials(pod, view, filters, self._gangs, self._budgets, sitting.standing_of)
            best = self._by_trials(grid, trials, best, self._options.least_candidates)
        return Found(best, n_unhelpful, wait_seconds)

    # Who may go

    def _under_way(self, pod: PodInfo) -> UnderWay:
        """Return what earlier evictions take and bring, and what has been taken out for the moment."""
        sitting, nominated = self._sitting, self._nominated
        return UnderWay(
            gone=sitting.slots_of(one.uid for one in self._gone),
            going=sitting.slots_of(nominated.leaving()),
            coming=nominated.others(pod),
        )

    def _may_go(self, pod: PodInfo, now: float, untouchable: Collection[str]) -> tuple[Bools, float]:
        """(n_slots,) pods that may be evicted, and seconds until the first that is protected no longer is."""
        sitting = self._sitting
        n = sitting.n_slots
        if self._reclaim is None:
            may_go, borrows, wait_seconds = (sitting.row[:n] >= 0) & (sitting.priority[:n] < pod.priority), None, 0.0
        else:
            borrows = self._reclaim.may_go(pod, sitting, self._under_way(pod))
            may_go, wait_seconds = borrows.by_priority, borrows.wait_seconds
        protect = self._options.protect_started
        if protect and pod.priority < SYSTEM_CRITICAL:
            since = sitting.since[:n]
            # Clocks differ: a pod from the near future is young, one from afar has a wrong date.
            age = np.abs(now - since)
            is_young = may_go & (age < protect)
            if is_young.any():
                until_old = float(np.clip(since[is_young] + protect - now, 0.1, 2 * protect).min())
                wait_seconds = min(wait_seconds, until_old) if wait_seconds else until_old
                may_go &= ~is_young
        if borrows is not None:
            may_go |= borrows.lent  # of which the newest go first
        with_gang = may_go if borrows is None else may_go | borrows.with_gang
        if untouchable:
            slots = sitting.slots_of(untouchable)
            if borrows is not None and borrows.lent[slots].any():
                wait_seconds = min(wait_seconds, _BINDING_SECONDS) if wait_seconds else _BINDING_SECONDS
            may_go[slots] = with_gang[slots] = False
        if self._gangs is not None and sitting.n_gangs:
            # A gang is evicted as a whole, so a member that may not go keeps all of it.
            gang = sitting.gang[:n]
            is_kept = np.zeros(sitting.n_gangs, dtype=bool)
            is_kept[gang[(gang != NONE) & ~with_gang]] = True
            may_go &= (gang == NONE) | ~is_kept[gang]
        if self._gone:
            may_go[sitting.slots_of(pod.uid for pod in self._gone)] = False
        return may_go, wait_seconds

    # Only requests in the way

    def _going(self, may_go: Bools) -> Ints:
        """Slots of pods that go already for pods nominated to their node, whether or not the watch shows it yet."""
        sitting, nominated = self._sitting, self._nominated
        found = [sitting.slots_of(one.victims) for row in nominated.rows() for one in nominated.on(row)]
        slots = np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)
        return slots[may_go[slots]]

    def _in_room_to_come(self, rows: Ints, room: ReleasableRoom, may_go: Bools) -> NodeVictims | None:
        """Find the first node where no further pod has to go: pods that go already leave room beyond what is kept for
        others.

        Those are named as victims, so that the pod waits for them.
        """
        going = self._going(may_go)
        if not len(going):
            return None
        is_enough = ~room.without(going, self._sitting).lacking[rows]
        if not is_enough.any():
            return None
        row = int(rows[is_enough.argmax()])
        return NodeVictims(nothing(row), self._in_order(going[self._sitting.row[going] == row]))

    def _by_requests(self, rows: Ints, may_go: Bools, priority: int, room: ReleasableRoom) -> NodeVictims | None:
        """Of all nodes at once; the same as looking at each in turn."""
        found = self._in_room_to_come(rows, room, may_go)
        if found is not None:
            return found
        nodes = CandidateNodes.of(rows, self._cumulated.of(priority, may_go), room, self._sitting)
        best: NodeVictims | None = None
        for bound in np.unique(nodes.bound).tolist():
            if _cannot_be_beaten(best, bound):
                break
            best = self._best_of(nodes.part(np.flatnonzero(nodes.bound == bound)), may_go, room, best)
        return best

    def _best_of(
        self, nodes: CandidateNodes, may_go: Bools, room: ReleasableRoom, best: NodeVictims | None
    ) -> NodeVictims | None:
        """Of nodes of the same bound."""
        has_gangs = self._gangs is not None and self._sitting.n_gangs > 0
        special, violated = np.zeros(len(nodes.rows), dtype=bool), None
        if len(self._budgets):
            slots, goes = nodes.pods()
            violated = violating(slots, goes, self._sitting, self._budgets)
            if violated is not None:
                special |= violated.any(axis=0)
        if has_gangs:
            slots, goes = nodes.pods()
            special |= (goes & (self._sitting.gang[slots] != NONE)).any(axis=0)
        plain = np.flatnonzero(~special)
        if len(plain):
            found = nodes.part(plain).cheapest(best.cost if best is not None else None)
            if found is not None:
                best = NodeVictims(found[0], self._in_order(found[1]))
        if special.any():
            grid = Grid.of(nodes.rows[special], may_go, room, self._sitting)
            # Not so wide, but of the same nodes in the same order: the pod fits on each of them.
            here = None if violated is None else violated[: len(grid.slots), special]
            best = self._best_of_special(grid, here, best)
        return best

    def _best_of_special(self, grid: Grid, violating: Bools | None, best: NodeVictims | None) -> NodeVictims | None:
        """Of nodes where budgets or gangs matter."""
        slots, victims, costs = grid.reprieve(violating)
        in_gang = np.zeros(len(grid.rows), dtype=bool)
        if self._gangs is not None and self._sitting.n_gangs:
            in_gang = (victims & (self._sitting.gang[slots] != NONE)).any(axis=0)
        plain = np.flatnonzero((costs.n_victims > 0) & ~in_gang)
        if len(plain):
            position = costs.least(plain)
            cost = costs.at(position)
            if best is None or cost < best.cost:
                best = NodeVictims(cost, self._in_order(slots[victims[:, position], position]))
        if in_gang.any():
            in_gangs = {one: slots[victims[:, one], one] for one in np.flatnonzero(in_gang).tolist()}
            best = self._best_with_gangs(grid, violating, costs, in_gangs, best)
        return best

    def _best_with_gangs(
        self,
        grid: Grid,
        violating: Bools | None,
        costs: EvictionCosts,
        victims: Mapping[int, Ints],
        best: NodeVictims | None,
    ) -> NodeVictims | None:
        """victims: slots of those who would go if gangs did not matter, by position. Broken gangs cost at least what
        all of their members cost; the others need not all go then."""
        assert self._gangs is not None
        whole: dict[str, Cost] = {}
        bounds: list[tuple[Cost, int, bool]] = []
        for position, slots in victims.items():
            bound = costs.at(position)
            broken = broken_gangs(self._sitting.at(slots), self._gangs)
            for gang in broken:
                if gang not in whole:
                    whole[gang] = cost_of(-1, self._gangs.sitting(gang), 0, self._sitting.standing_of)
            if broken:
                bound = max(whole[gang] for gang in broken)
            bounds.append((bound, position, bool(broken)))
        for bound, position, is_broken in sorted(bounds):
            if best is not None and best.cost < bound:
                break
            if is_broken:
                node = one_node(grid, position, violating)
                found = with_whole_gangs(node, self._gangs, self._budgets, self._sitting.standing_of)
            else:
                found = NodeVictims(bound, self._in_order(victims[position]))
            if best is None or found.cost < best.cost:
                best = found
        return best

    def _in_order(self, slots: Ints) -> tuple[PodInfo, ...]:
        sitting = self._sitting
        order = np.lexsort(
            (sitting.tie[slots], sitting.created[slots], sitting.started[slots], -sitting.standing[slots])
        )
        return tuple(sitting.at(slots[order]))

    # Something else in the way

    def _by_trials(self, grid: Grid, trials: Trials, best: NodeVictims | None, most: int) -> NodeVictims | None:
        """Try `most` nodes, those whose victims may be of the lowest standing first."""
        violating = grid.violating(self._budgets)
        for position in self._most_promising(grid, trials, violating, most):
            if _cannot_be_beaten(best, int(grid.bound[position])):
                continue
            found = trials.victims(one_node(grid, position, violating))
            if found is not None and (best is None or found.cost < best.cost):
                best = found
        return best

    @staticmethod
    def _most_promising(grid: Grid, trials: Trials, violating: Bools | None, most: int) -> Sequence[int]:
        order = np.argsort(grid.bound, kind="stable").tolist()
        if not trials.foresees:
            return list(order[:most])
        promising: list[tuple[int, Cost, int]] = []
        n_best = 0  # of nodes that hardly any other can beat: one victim at most, of no higher standing than must be
        for position in order:
            bound = int(grid.bound[position])
            if n_best >= most or len(promising) >= max(most, _MOST_FORESEEN):
                break
            cost = trials.foreseen(one_node(grid, position, violating))
            if cost is not None:
                promising.append((max(bound, cost.highest), cost, position))
                n_best += cost.n_victims <= 1 and cost.highest <= bound
        return [position for _, _, position in sorted(promising)[:most]]


def one_node(grid: Grid, position: int, violating: Bools | None) -> OneNode:
    """A column of the grid."""
    places = np.flatnonzero(grid.may_go[:, position])
    violates = np.zeros(len(places), dtype=bool) if violating is None else violating[places, position]
    order = np.argsort(~violates, kind="stable")
    slots = grid.slots[places[order], position]
    return OneNode(
        row=int(grid.rows[position]),
        pods=tuple(grid.sitting.at(slots)),
        gives=tuple(zip(*(gives[slots].tolist() for gives in grid.gives), strict=True)) or ((),) * len(slots),
        violates=tuple(violates[order].tolist()),
        spare=tuple(grid.spare[:, position].tolist()),
    )


def _near_whom_it_wants_to_be(pod: PodInfo, view: ClusterView) -> Bools:
    """(n_rows,) nodes with pods that an affinity term of the pod means: evicting these may do harm."""
    nodes = np.zeros(view.n_rows, dtype=bool)
    for term in pod.constraints.affinity:
        meant = view.index.groups.meant_by(as_read(term, view.state.version), view.index.namespaces)
        nodes[view.index.groups.pods_of(meant).rows] = True
    return nodes


def _cannot_be_beaten(best: NodeVictims | None, bound: int) -> bool:
    return best is not None and best.cost.violations == 0 and best.cost.highest < bound
