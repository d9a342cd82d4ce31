"""Items that nodes reach by their labels (free volumes, capacities): the smallest that will do, for all nodes at once.

Nearly all such items are for one value of one label: a disk of one node, storage of one zone. They are kept by that
value, so that thousands of them cost one look-up per node; the few with other terms are tried set by set.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from base.arrays import Bools, Floats, Ints
from kube.objects.constraints import NodeSelectorTerm, Operator, Requirement
from placement.index.node_labels import ABSENT, NodeLabels, rows_meeting, rows_with_labels

Terms = tuple[NodeSelectorTerm, ...] | None
"""One of them must match the labels of a node; None = every node."""

NONE = -1
"""No item."""


@dataclass(frozen=True, slots=True)
class _Item:
    amount: float
    category: int
    terms: Terms


@dataclass(slots=True)
class _Group:
    """Items for values of one label key (None = no key), on nodes that meet further terms or requirements, too.

    values, slots : one entry per item and value
    ordered       : the same as arrays by value, amount, slot; None = to be made
    translated    : values of a label column, how many they and ours were (both only grow), and our numbers of them
    """

    key: str | None
    terms: Terms = None
    requirements: tuple[Requirement, ...] = ()
    number_of: dict[str, int] = field(default_factory=dict)
    values: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    ordered: tuple[Ints, Ints] | None = None
    translated: tuple[list[str], tuple[int, int], Ints] | None = None

    def add(self, value: str, slot: int) -> None:
        """An item for nodes with this value."""
        self.values.append(self.number_of.setdefault(value, len(self.number_of)))
        self.slots.append(slot)
        self.ordered = None

    def order(self, amounts: Floats) -> tuple[Ints, Ints]:
        """Values and slots by value, then amount, then slot."""
        if self.ordered is None:
            values, slots = np.array(self.values, dtype=np.int64), np.array(self.slots, dtype=np.int64)
            order = np.lexsort((slots, amounts[slots], values))
            self.ordered = values[order], slots[order]
        return self.ordered

    def rows(self, labels: NodeLabels, n_rows: int) -> Ints:
        """(n_rows,) number of the value that a node has, NONE where it has none of them."""
        met = rows_with_labels(self.terms, labels, n_rows)
        if self.requirements:
            met &= rows_meeting(self.requirements, labels, n_rows)
        if self.key is None:
            return np.where(met, 0, NONE)
        column = labels.column(self.key)
        return np.where(met, self._numbers_of(column.names)[column.values], NONE)

    def _numbers_of(self, names: list[str]) -> Ints:
        """Our number of each value of a label column, and at its end, which is read at ABSENT, NONE."""
        state = (len(names), len(self.number_of))
        if self.translated is None or self.translated[0] is not names or self.translated[1] != state:
            numbers = [self.number_of.get(name, NONE) for name in names]
            self.translated = names, state, np.array([*numbers, NONE], dtype=np.int64)
        return self.translated[2]


class TopologyPool:
    """Items by name. amount: size of an item; category: a number whose meaning the caller defines.

    names, amounts, categories : by slot; slots of items that went stay until the pool is made anew
    """

    def __init__(self) -> None:
        self._items: dict[Hashable, _Item] = {}
        self._start()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, name: Hashable, amount: float, terms: Terms, *, category: int = 0) -> None:
        """An item is new or has changed."""
        item = _Item(amount, category, terms)
        if self._items.get(name) == item:
            return
        self.delete(name)
        self._items[name] = item
        self._add(name, item)

    def delete(self, name: Hashable) -> None:
        """An item is gone, if it was there."""
        if self._items.pop(name, None) is None:
            return
        self._alive[self._slot_of.pop(name)] = False
        if len(self.names) > 2 * len(self._items) + 64:
            self._start()
            for other, item in self._items.items():
                self._add(other, item)

    def with_amount(self, minimum: float) -> Bools:
        """(n_slots,) items at least that large."""
        n_slots = len(self.names)
        return np.asarray(self._alive[:n_slots] & (self._amounts[:n_slots] >= minimum))

    @property
    def categories(self) -> Ints:
        """(n_slots,)"""
        return self._categories[: len(self.names)]

    def smallest(self, accepted: Bools, labels: NodeLabels, n_rows: int, taken: Sequence[Ints] = ()) -> Ints:
        """The slot of the smallest accepted item that each node reaches, the older one of two alike; NONE = none.

        accepted : (n_slots,)
        taken    : (n_rows,) each, slots that a node has no more
        Returns (n_rows,).
        """
        best = np.full(n_rows, NONE, dtype=np.int64)
        if not accepted.any():
            return best
        for group in self._groups.values():
            found = self._first(group, accepted, labels, n_rows, taken)
            better = (found != NONE) & ((best == NONE) | self._is_smaller(found, best))
            best = np.where(better, found, best)
        return best

    def _first(self, group: _Group, accepted: Bools, labels: NodeLabels, n_rows: int, taken: Sequence[Ints]) -> Ints:
        values, slots = group.order(self._amounts)
        keep = accepted[slots]
        values, slots = values[keep], slots[keep]
        if not len(slots):
            return np.full(n_rows, NONE, dtype=np.int64)
        numbers = np.arange(len(group.number_of) + 1)  # the last, which is that of NONE, has no items
        starts, ends = np.searchsorted(values, numbers), np.searchsorted(values, numbers, side="right")
        of_row = group.rows(labels, n_rows)
        position, end = starts[of_row], ends[of_row]
        slots = np.append(slots, NONE)
        found = np.where(position < end, slots[position], NONE)
        for _ in taken:  # a node can have taken one item of these per entry
            clash = (found != NONE) & np.any([one == found for one in taken], axis=0)
            if not clash.any():
                break
            position = position + clash
            found = np.where(position < end, slots[np.minimum(position, len(slots) - 1)], NONE)
        return found

    def _is_smaller(self, slots: Ints, than: Ints) -> Bools:
        amounts, others = self._amounts[slots], self._amounts[than]
        return np.asarray((amounts < others) | ((amounts == others) & (slots < than)))

    def _start(self) -> None:
        self.names: list[Hashable] = []
        self._slot_of: dict[Hashable, int] = {}
        self._groups: dict[tuple[str | None, Hashable], _Group] = {}
        self._alive = np.zeros(64, dtype=bool)
        self._amounts = np.zeros(64)
        self._categories = np.zeros(64, dtype=np.int64)

    def _add(self, name: Hashable, item: _Item) -> None:
        slot = self._slot_of[name] = len(self.names)
        self.names.append(name)
        if slot == len(self._alive):
            self._alive = np.append(self._alive, np.zeros_like(self._alive))
            self._amounts = np.append(self._amounts, np.zeros_like(self._amounts))
            self._categories = np.append(self._categories, np.zeros_like(self._categories))
        self._alive[slot], self._amounts[slot], self._categories[slot] = True, item.amount, item.category
        keyed = _keyed(item.terms)
        if keyed is None:
            self._groups.setdefault((None, item.terms), _Group(None, item.terms)).add("", slot)
            return
        chosen, others = keyed
        group = self._groups.setdefault((chosen.key, others), _Group(chosen.key, requirements=others))
        for value in set(chosen.values):
            group.add(value, slot)


def _keyed(terms: Terms) -> tuple[Requirement, tuple[Requirement, ...]] | None:
    """The requirement to look items up by, and the others; None if these terms are not of that kind."""
    if terms is None or len(terms) != 1 or terms[0].fields:
        return None
    expressions = terms[0].expressions
    lists = [index for index, one in enumerate(expressions) if one.operator is Operator.IN]
    if not lists:
        return None
    # By the node rather than by its zone, say: so the other requirements are few different ones.
    index = next((i for i in lists if "host" in expressions[i].key or "node" in expressions[i].key), lists[0])
    return expressions[index], (*expressions[:index], *expressions[index + 1 :])


assert ABSENT == NONE  # tables above are read at -1
