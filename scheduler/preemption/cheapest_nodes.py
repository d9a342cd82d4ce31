"""The cheapest of nodes where neither budgets nor gangs matter: almost always all of them.

Pods that may go are looked at from the most important on; the first that cannot stay is known from sums alone
(releasable_room.py) and has the highest priority, and the earliest start, of all victims of its node. If it is enough
that it goes, no node with more victims of that priority can be cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Ints
from placement.pod_importance import PRIORITY_OFFSET, Cost
from scheduler.preemption.releasable_room import Cumulated, ReleasableRoom
from scheduler.preemption.sitting_pods import SittingPods


@dataclass(frozen=True, slots=True)
class CandidateNodes:
    """Nodes on which the pod fits once all that may go are gone, and not before.

    rows  : (n_nodes,) ascending
    spare : (n_limits, n_nodes) what may stay with those that may go, >= 0
    first : (n_nodes,) place of the first pod that cannot stay
    bound : (n_nodes,) its standing, see pod_importance.py
    """

    sitting: SittingPods
    cumulated: Cumulated
    kinds: tuple[str, ...]
    gives: tuple[Ints, ...]
    rows: Ints
    spare: Ints
    first: Ints
    bound: Ints

    @classmethod
    def of(cls, rows: Ints, cumulated: Cumulated, room: ReleasableRoom, sitting: SittingPods) -> CandidateNodes:
        """Of nodes that lack something, those that can be helped."""
        rows = rows[rows < len(sitting.order)]
        gone = [cumulated.gone(kind) for kind in room.kinds]
        spare = room.left[:, rows] + np.array([each[rows, -1] for each in gone]).reshape(len(gone), len(rows))
        helped = np.flatnonzero((spare >= 0).all(axis=0))
        rows, spare = rows[helped], spare[:, helped]
        over = np.zeros((len(rows), cumulated.may_go.shape[1]), dtype=bool)
        is_all = len(rows) == len(sitting.order)
        for each, limit in zip(gone, spare, strict=True):
            over |= (each if is_all else each[rows]) > limit[:, None]
        first = over.argmax(axis=1)
        bound = sitting.standing[sitting.order[rows, first]] if len(rows) else np.zeros(0, dtype=np.int64)
        return cls(sitting, cumulated, room.kinds, room.gives, rows, spare, first, bound)

    def part(self, positions: Ints) -> CandidateNodes:
        """Some of the nodes."""
        if len(positions) == len(self.rows):
            return self
        return CandidateNodes(
            self.sitting,
            self.cumulated,
            self.kinds,
            self.gives,
            self.rows[positions],
            self.spare[:, positions],
            self.first[positions],
            self.bound[positions],
        )

    def pods(self) -> tuple[Ints, Bools]:
        """(n_most, n_nodes) slots, and who of them may go."""
        return self.sitting.order[self.rows].T, self.cumulated.may_go[self.rows].T

    def cheapest(self, to_beat: Cost | None) -> tuple[Cost, Ints] | None:
        """Find the cheapest of these nodes, which have the same bound, and the slots of its victims; None = none beats
        it.

        No victim violates a budget here.
        """
        gone = [self.cumulated.gone(kind) for kind in self.kinds]
        # The room that pods behind the first victim may keep, and which of them.
        before = np.maximum(self.first - 1, 0)
        left = [
            limit - np.where(self.first > 0, each[self.rows, before], 0)
            for each, limit in zip(gone, self.spare, strict=True)
        ]
        behind = [each[self.rows, -1] - each[self.rows, self.first] for each in gone]
        is_enough = np.ones(len(self.rows), dtype=bool)
        for rest, limit in zip(behind, left, strict=True):
            is_enough &= rest <= limit
        if is_enough.any():
            chosen, sums, counts = np.flatnonzero(is_enough), None, None
        else:
            sums, counts = self._reprieve(left)
            chosen = np.flatnonzero(sums == sums.min())
            chosen = chosen[counts[chosen] == counts[chosen].min()]
        started = self.sitting.started[self.sitting.order[self.rows[chosen], self.first[chosen]]]
        position = int(chosen[started.argmax()])  # argmax: the first of the latest
        highest = int(self.bound[position])
        cost = Cost(
            violations=0,
            highest=highest,
            sum_priorities=highest + PRIORITY_OFFSET if sums is None else int(sums[position]),
            n_victims=1 if counts is None else int(counts[position]),
            minus_start=-float(started.max()),
            row=int(self.rows[position]),
        )
        return None if to_beat is not None and to_beat <= cost else (cost, self._victims(position))

    def _reprieve(self, left: list[Ints]) -> tuple[Ints, Ints]:
        """Sum of priorities and number of the victims of each node. left: (n_nodes,) by limit, behind the first."""
        standing = self.sitting.standing
        sums, counts = self.bound + PRIORITY_OFFSET, np.ones(len(self.rows), dtype=np.int64)
        for place in range(int(self.first.min()) + 1, self.cumulated.may_go.shape[1]):
            asks = self.cumulated.may_go[self.rows, place] & (place > self.first)
            if not asks.any():
                continue
            slots = self.sitting.order[self.rows, place]
            given = [gives[slots] for gives in self.gives]
            may_stay = asks.copy()
            for each, limit in zip(given, left, strict=True):
                may_stay &= each <= limit
            for each, limit in zip(given, left, strict=True):
                limit -= each * may_stay
            goes = asks & ~may_stay
            sums = sums + (standing[slots] + PRIORITY_OFFSET) * goes
            counts += goes
        return sums, counts

    def _victims(self, position: int) -> Ints:
        """Slots of the victims of one node."""
        row = int(self.rows[position])
        left = [int(limit[position]) for limit in self.spare]
        victims = []
        places = np.flatnonzero(self.cumulated.may_go[row])
        slots = self.sitting.order[row, places]
        for slot, given in zip(slots.tolist(), zip(*(g[slots].tolist() for g in self.gives), strict=True), strict=True):
            if all(each <= limit for each, limit in zip(given, left, strict=True)):
                left = [limit - each for each, limit in zip(given, left, strict=True)]
            else:
                victims.append(slot)
        return np.array(victims, dtype=np.int64)
