"""What each node gets back if its least important pods go, added up once and kept until pods or rules change.

Searching for a pod then needs a comparison per pod that sits, instead of collecting their requests again: at 5,000
nodes of 30 pods a third of the time. Kept for the last few priorities that preempted.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from scheduler.preemption.sitting_pods import SittingPods

_PRIORITIES: Final = 3
_LIMITS: Final = 8


class Cumulated:
    """For pods of one priority. gone[limit]: (n_rows, n_most) what the first pods of a node that may go, the most
    important ones, hold together; the last column is what all of them hold."""

    def __init__(self, sitting: SittingPods) -> None:
        self._sitting = sitting
        self._version = -1
        self._may_go: Bools = np.zeros(0, dtype=bool)
        self.may_go: Bools = np.zeros((0, 0), dtype=bool)
        self._gone: OrderedDict[str, Ints] = OrderedDict()

    def follow(self, may_go: Bools) -> None:
        """may_go: (n_slots,) pods that may be evicted."""
        sitting = self._sitting
        width = max(1, sitting.order.shape[1])
        if self.may_go.shape != (len(sitting.order), width):
            self.may_go = np.zeros((len(sitting.order), width), dtype=bool)
            self._gone.clear()
            self._version = -1
        if self._version < 0:
            rows = np.arange(len(sitting.order))
        else:
            stale = sitting.version_of > self._version
            n = min(len(may_go), len(self._may_go))
            others = np.flatnonzero(may_go[:n] != self._may_go[:n])
            # New slots, and those that were free, are on rows that have changed.
            row_of = sitting.row[others]
            stale[row_of[row_of >= 0]] = True
            rows = np.flatnonzero(stale)
        self._version, self._may_go = sitting.version, may_go
        if len(rows) and sitting.order.shape[1]:
            slots = sitting.order[rows]
            self.may_go[rows] = (slots >= 0) & may_go[slots]
            for kind, gone in self._gone.items():
                gone[rows] = self._cumulated(kind, rows)

    def gone(self, kind: str) -> Ints:
        """(n_rows, n_most) whole units of a resource; of kind '' pods."""
        found = self._gone.get(kind)
        if found is None:
            found = self._gone[kind] = np.zeros(self.may_go.shape, dtype=np.int64)
            if self._sitting.order.shape[1]:
                found[:] = self._cumulated(kind, np.arange(len(found)))
            if len(self._gone) > _LIMITS:
                self._gone.popitem(last=False)
        self._gone.move_to_end(kind)
        return found

    def _cumulated(self, kind: str, rows: Ints) -> Ints:
        may_go = self.may_go[rows]
        if not kind:
            return np.cumsum(may_go, axis=1, dtype=np.int64)
        units = self._sitting.units(kind)[self._sitting.order[rows]]
        return np.cumsum(np.where(may_go, units, 0), axis=1)


class CumulatedByPriority:
    """The last few."""

    def __init__(self, sitting: SittingPods) -> None:
        self._sitting = sitting
        self._of: OrderedDict[int, Cumulated] = OrderedDict()

    def of(self, priority: int, may_go: Bools) -> Cumulated:
        """For pods of a priority; may_go: (n_slots,) who may be evicted for one."""
        found = self._of.get(priority)
        if found is None:
            found = self._of[priority] = Cumulated(self._sitting)
            if len(self._of) > _PRIORITIES:
                self._of.popitem(last=False)
        self._of.move_to_end(priority)
        found.follow(may_go)
        return found
