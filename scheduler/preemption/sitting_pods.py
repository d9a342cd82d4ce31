"""Bound pods as arrays by node and importance: what the search for victims reads.

Each pod has a slot: its priority, start, requests, budget and gang in one place of as many arrays. `order` has a row
per node with the slots of its pods, the most important first. Changes are only noted when they happen, at the cost of a
dict entry: a search, or an idle loop, brings the arrays up to date (`settle`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from cluster.follower import NodesAndPodsOnly
from cluster.predicted.array_rows import grown
from cluster.tables.changes import Change, PodChange, one_by_one
from cluster.tables.columns import request_units
from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo
from placement.disruption_budgets import DisruptionBudgets
from placement.pod_importance import Standing, priority_of, start_of, tie_of
from scheduler.preemption.victim_gangs import VictimGangs

NONE: Final = -1
SEVERAL: Final = -2
"""In place of the number of a budget."""

_KINDS: Final = 12
"""Resources whose requests are kept by slot; of others they are collected when they are asked for."""


class SittingPods(NodesAndPodsOnly):
    """A Follower of the tables; everything is called under their lock.

    stand_ins: UIDs of those that hold the room of a Reservation, and may never be evicted; as of the last change.

    By slot, more entries than used: pods (None = free), row (-1 = free), priority, standing (pod_importance.py),
    started (inf = not yet), created, since (started, else created), tie, budget (number, NONE, SEVERAL), gang (number,
    NONE). By row: order, (n_rows, n_most) slots, -1 after the last; n_on pods; version_of, the `version` at which the
    order was made. Valid after `settle`.
    """

    def __init__(
        self,
        state: ClusterState,
        budgets: DisruptionBudgets,
        gangs: VictimGangs | None = None,
        *,
        standing_of: Standing = priority_of,
    ) -> None:
        """standing_of: a function of the pod alone; of pods that it puts lower, victims are chosen first."""
        self._state, self._budgets, self._gangs = state, budgets, gangs
        self.standing_of: Final = standing_of
        self._start_over()

    def _start_over(self) -> None:
        self.pods: list[PodInfo | None] = []
        self.slot_of: dict[str, int] = {}
        self._free: list[int] = []
        self.row = np.full(0, -1, dtype=np.int64)
        self.priority, self.tie = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self.standing = np.zeros(0, dtype=np.int64)
        self.started, self.created, self.since = np.zeros(0), np.zeros(0), np.zeros(0)
        self.budget, self.gang = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._units: OrderedDict[str, Ints] = OrderedDict(
            (kind, np.zeros(0, dtype=np.int64)) for kind in ("cpu", "memory")
        )
        self._gang_number: dict[str, int] = {}
        self._gang_name: list[str] = []
        self._gang_size: list[int] = []
        self._free_gangs: list[int] = []
        self.order = np.full((0, 0), NONE, dtype=np.int64)
        self.n_on = np.zeros(0, dtype=np.int64)
        self.version_of, self.version = np.zeros(0, dtype=np.int64), 0
        self._dirty: set[int] = set()
        self._selected = self._budgets.selected
        self._noted: dict[str, tuple[int, PodInfo] | None] = {
            uid: (seat.node, self._state.pods[uid]) for uid, seat in self._state.seat_of.items()
        }
        self.stand_ins = {uid for uid in self._state.seat_of if self._state.pods[uid].stands_in}

    # Follower

    def apply(self, changes: Sequence[Change]) -> None:
        """Note where pods sit."""
        noted = self._noted
        for change in one_by_one(changes):
            if isinstance(change, PodChange) and (change.before is not None or change.after is not None):
                uid, after = change.pod.uid, change.after
                if change.pod.stands_in:
                    (self.stand_ins.discard if after is None else self.stand_ins.add)(uid)
                if after is not None:
                    noted[uid] = (after.node, change.pod)
                elif uid in self.slot_of:
                    noted[uid] = None
                else:
                    noted.pop(uid, None)  # came and went: nothing is kept of it

    def rebuild(self) -> None:
        """Make anew from the state."""
        self._start_over()

    # What is read

    @property
    def n_slots(self) -> int:
        """Slots, free ones included."""
        return len(self.pods)

    def settle(self, most: int | None = None) -> None:
        """Bring the arrays up to date. most: of the noted changes, for a caller with little time."""
        if most is not None and len(self._noted) > most:
            some = list(islice(self._noted, most))
            for uid in some:
                self._take(uid, self._noted.pop(uid))
            return
        noted, self._noted = self._noted, {}
        for uid, now in noted.items():
            self._take(uid, now)
        if self._selected != self._budgets.selected:
            self._selected = self._budgets.selected
            for slot, pod in enumerate(self.pods):
                if pod is not None:
                    self.budget[slot] = self._budget_of(pod)
        self._sort()

    def units(self, kind: str) -> Ints:
        """(n_slots,) or more: requests in whole units."""
        column = self._units.get(kind)
        if column is None:
            column = np.zeros(len(self.row), dtype=np.int64)
            for slot, pod in enumerate(self.pods):
                if pod is not None and kind in pod.requests:
                    column[slot] = request_units(kind, pod.requests[kind])
            self._units[kind] = column
            if len(self._units) > _KINDS:
                self._units.popitem(last=False)
        self._units.move_to_end(kind)
        return column

    def on(self, row: int) -> list[PodInfo]:
        """Pods on the node of a row, the most important first."""
        if row >= len(self.order):
            return []
        return self.at(self.order[row, : self.n_on[row]])

    def at(self, slots: Ints) -> list[PodInfo]:
        """Pods of slots that are in use."""
        return [pod for slot in slots.tolist() if (pod := self.pods[slot]) is not None]

    def slot_named(self, namespace: str, name: str) -> int | None:
        """Slot of a pod by its name; None = no such pod sits."""
        pod = self._state.find_pod(namespace, name)
        return None if pod is None else self.slot_of.get(pod.uid)

    @property
    def n_gangs(self) -> int:
        """Numbers of gangs, free ones included."""
        return len(self._gang_name)

    def slots_of(self, uids: Iterable[str]) -> Ints:
        """Slots of these pods, as far as they sit."""
        slots = (self.slot_of.get(uid) for uid in uids)
        return np.array([slot for slot in slots if slot is not None], dtype=np.int64)

    def mask(self, slots: Ints) -> Bools:
        """(n_slots,) true for these."""
        mask = np.zeros(self.n_slots, dtype=bool)
        mask[slots] = True
        return mask

    # Inside

    def _take(self, uid: str, now: tuple[int, PodInfo] | None) -> None:
        slot = self.slot_of.get(uid)
        if now is None:
            if slot is not None:
                self._leave(uid, slot)
            return
        row, pod = now
        if slot is None:
            slot = self._new_slot(uid)
        elif self.pods[slot] is pod and self.row[slot] == row:
            return
        else:
            self._dirty.add(int(self.row[slot]))
            self._leave_gang(slot)
        self.pods[slot] = pod
        self.row[slot], self.priority[slot], self.standing[slot] = row, pod.priority, self.standing_of(pod)
        self.started[slot], self.created[slot], self.tie[slot] = start_of(pod), pod.created, tie_of(pod)
        self.since[slot] = pod.created if pod.started is None else pod.started
        self.budget[slot], self.gang[slot] = self._budget_of(pod), self._join_gang(pod)
        for kind, column in self._units.items():
            column[slot] = request_units(kind, pod.requests[kind]) if kind in pod.requests else 0
        self._dirty.add(row)

    def _new_slot(self, uid: str) -> int:
        if self._free:
            slot = self._free.pop()
        else:
            slot = len(self.pods)
            self.pods.append(None)
            if slot >= len(self.row):
                n = slot + 1
                self.row, self.priority, self.tie = grown(self.row, n, -1), grown(self.priority, n), grown(self.tie, n)
                self.started, self.created = grown(self.started, n), grown(self.created, n)
                self.since, self.standing = grown(self.since, n), grown(self.standing, n)
                self.budget, self.gang = grown(self.budget, n, NONE), grown(self.gang, n, NONE)
                for kind, column in self._units.items():
                    self._units[kind] = grown(column, n)
        self.slot_of[uid] = slot
        return slot

    def _leave(self, uid: str, slot: int) -> None:
        self._leave_gang(slot)
        self._dirty.add(int(self.row[slot]))
        del self.slot_of[uid]
        self.pods[slot] = None
        self.row[slot], self.priority[slot], self.budget[slot], self.gang[slot] = -1, 0, NONE, NONE
        self.standing[slot] = 0
        for column in self._units.values():
            column[slot] = 0
        self._free.append(slot)

    def _budget_of(self, pod: PodInfo) -> int:
        numbers = self._budgets.numbers_of(pod) if len(self._budgets) else ()
        if not numbers:
            return NONE
        return numbers[0] if len(numbers) == 1 else SEVERAL

    def _join_gang(self, pod: PodInfo) -> int:
        name = None if self._gangs is None else self._gangs.group_of(pod)
        if name is None:
            return NONE
        number = self._gang_number.get(name)
        if number is None:
            number = self._free_gangs.pop() if self._free_gangs else len(self._gang_name)
            if number == len(self._gang_name):
                self._gang_name.append("")
                self._gang_size.append(0)
            self._gang_number[name], self._gang_name[number] = number, name
        self._gang_size[number] += 1
        return number

    def _leave_gang(self, slot: int) -> None:
        number = int(self.gang[slot])
        if number == NONE:
            return
        self._gang_size[number] -= 1
        if not self._gang_size[number]:
            del self._gang_number[self._gang_name[number]]
            self._free_gangs.append(number)

    def _sort(self) -> None:
        """Put the pods of changed nodes in order again."""
        if not self._dirty:
            return
        dirty, self._dirty = self._dirty, set()
        n_rows = max(len(self.order), max(dirty) + 1)
        if n_rows > len(self.order):
            larger = np.full((n_rows + n_rows // 2, self.order.shape[1]), NONE, dtype=np.int64)
            larger[: len(self.order)] = self.order
            self.order, self.n_on = larger, grown(self.n_on, len(larger))[: len(larger)]
            self.version_of = np.r_[self.version_of, np.zeros(len(larger) - len(self.version_of), dtype=np.int64)]
        rows = np.fromiter(dirty, dtype=np.int64, count=len(dirty))
        changed = np.zeros(len(self.order) + 1, dtype=bool)  # the last is for slots that are free: row -1
        changed[rows] = True
        slots = np.flatnonzero(changed[self.row[: self.n_slots]])
        order = np.lexsort(
            (self.tie[slots], self.created[slots], self.started[slots], -self.standing[slots], self.row[slots])
        )
        slots = slots[order]
        row_of = self.row[slots]
        counts = np.bincount(row_of, minlength=len(self.order))
        widest = int(counts.max(initial=0))
        if widest > self.order.shape[1]:
            wider = np.full((len(self.order), widest + widest // 4), NONE, dtype=np.int64)
            wider[:, : self.order.shape[1]] = self.order
            self.order = wider
        starts = np.cumsum(counts) - counts
        self.order[rows] = NONE
        self.order[row_of, np.arange(len(slots)) - starts[row_of]] = slots
        self.n_on[rows] = counts[rows]
        self.version += 1
        self.version_of[rows] = self.version
