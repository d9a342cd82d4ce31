"""Nodes of each kind, the best first, while one node after the other changes.

Nodes of one kind get the same score for topology spread (placement/scores/pod_topology_spread.py), which changes with
every pod; within a kind the rest decides. Nodes are sorted as far as they are looked at; those that change go into
heaps next to it.

Nodes from the best to the worst, sorted only as far as somebody looks.

A batch of some dozen pods looks at as many nodes, and a full sort of 5,000 takes as long as placing ten pods.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

import numpy as np

from base.arrays import Floats, Ints

_CHUNK: Final = 64
"""Nodes that are sorted first; four times as many the next time."""

_FEW_KINDS = 2**15

Ranked = tuple[float, int, float, float]
"""-(standard + ours), position, standard, ours: sorts as it should."""


class BestFirst:
    """Positions by their worth, the highest first, of equal ones the first position."""

    def __init__(self, worth: Floats, positions: Ints) -> None:
        """
        worth     : (n_nodes,) not NaN
        positions : (n,) in ascending order, of the nodes that are meant
        """
        self._cost: Floats = -worth[positions]
        self._rest = positions
        self._chunk = _CHUNK
        self._sorted: Ints = positions[:0]

    def first(self, n: int) -> Ints:
        """Return at least the best `n` in order, or all if there are fewer."""
        while len(self._sorted) < n and len(self._rest):
            self._sort_more()
        return self._sorted

    def _sort_more(self) -> None:
        size = self._chunk
        self._chunk *= 4
        if len(self._rest) <= size:
            chosen, chosen_cost = self._rest, self._cost
            self._rest, self._cost = self._rest[:0], self._cost[:0]
        else:
            # All that equal the last one are in, or which of them come now would be chance.
            is_in = self._cost <= np.partition(self._cost, size - 1)[size - 1]
            chosen, chosen_cost = self._rest[is_in], self._cost[is_in]
            self._rest, self._cost = self._rest[~is_in], self._cost[~is_in]
        self._sorted = np.concatenate([self._sorted, chosen[np.argsort(chosen_cost, kind="stable")]])


class RankedByKind:
    """Nodes are positions. order: as they were at the beginning, of all kinds."""

    def __init__(self, standard: Floats, ours: Floats, kind: Ints, n_kinds: int) -> None:
        """standard, ours: (n_nodes,) whose sum ranks within a kind, higher is better, of equal ones the first; not
        changed while this is in use"""
        self._worth: Floats = standard + ours
        self.order = BestFirst(self._worth, np.arange(len(kind)))
        # Small whole numbers are sorted in one pass.
        by_kind = np.argsort(kind.astype(np.int16) if n_kinds < _FEW_KINDS else kind, kind="stable")
        self._members = np.split(by_kind, np.cumsum(np.bincount(kind, minlength=n_kinds))[:-1])
        self._orders: list[BestFirst | None] = [None] * n_kinds  # by kind, of those that were looked at
        self._sorted: list[list[int]] = [[] for _ in range(n_kinds)]  # by kind, as far as they are sorted
        self._next: list[int] = [0] * n_kinds  # by kind, the place there up to which nodes were looked at
        self._standard, self._ours = standard, ours
        self._changed: set[int] = set()  # nodes that are to be found in heaps, if anywhere
        self._heaps: list[list[Ranked]] = [[] for _ in range(n_kinds)]
        self._current: dict[int, tuple[Ranked, int]] = {}  # by position, of those in heaps: entry and kind
        self._best: list[Ranked | None] = [None] * n_kinds
        self._kind_led_by: dict[int, int] = {}  # by position, of those that are the best of a kind
        self._stale: set[int] = set(range(n_kinds))  # kinds whose best is to be looked up

    def best(self) -> list[Ranked | None]:
        """The best node of each kind, to be read only; None = there is none."""
        for kind in self._stale:
            before = self._best[kind]
            if before is not None and self._kind_led_by.get(before[1]) == kind:  # else it leads another by now
                del self._kind_led_by[before[1]]
            changed, unchanged = self._best_in_heap(kind), self._best_in_order(kind)
            best = min(changed, unchanged) if changed and unchanged else changed or unchanged
            self._best[kind] = best
            if best is not None:
                self._kind_led_by[best[1]] = kind
        self._stale.clear()
        return self._best

    def put(self, position: int, kind: int, standard: float, ours: float) -> None:
        """A node is of this kind and worth this now, whatever it was before."""
        self.take(position)
        entry = (-(standard + ours), position, standard, ours)
        while kind >= len(self._heaps):
            self._heaps.append([])
            self._best.append(None)
            self._next.append(0)
            self._sorted.append([])
            self._orders.append(None)
        self._current[position] = entry, kind
        heappush(self._heaps[kind], entry)
        self._stale.add(kind)

    def take(self, position: int) -> None:
        """A node is not to be found any more, until it is put again."""
        self._changed.add(position)
        self._current.pop(position, None)
        if (kind := self._kind_led_by.get(position)) is not None:
            self._stale.add(kind)

    def _best_in_heap(self, kind: int) -> Ranked | None:
        heap = self._heaps[kind]
        while heap:
            known = self._current.get(heap[0][1])
            if known is not None and known[0] is heap[0]:
                return heap[0]
            heappop(heap)
        return None

    def _best_in_order(self, kind: int) -> Ranked | None:
        """Of the nodes that have not changed."""
        place, changed, in_order = self._next[kind], self._changed, self._sorted[kind]
        while place < len(in_order) or self._sort_more(kind, place):
            position = in_order[place]
            if position not in changed:
                self._next[kind] = place
                standard, ours = float(self._standard[position]), float(self._ours[position])
                return -(standard + ours), position, standard, ours
            place += 1
        self._next[kind] = place
        return None

    def _sort_more(self, kind: int, place: int) -> bool:
        """Whether there are nodes of the kind, as they were at the beginning, beyond this place."""
        if kind >= len(self._members) or place >= len(self._members[kind]):
            return False
        order = self._orders[kind]
        if order is None:
            order = self._orders[kind] = BestFirst(self._worth, self._members[kind])
        self._sorted[kind] += order.first(place + 1)[place:].tolist()
        return True
