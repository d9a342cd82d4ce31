"""Labels of nodes as columns, one array of value numbers per key, and which nodes have the labels that terms of a
node selector ask for.

As CheckNodeAffinity of a volume (component-helpers/storage/volume/helpers.go) sees a node: it has labels and no name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.constraints import NodeSelectorTerm, Operator, Requirement
from kube.objects.labels import requirement_matches
from kube.objects.objects import NodeInfo

ABSENT = -1

_FEW = 8


@dataclass(slots=True)
class LabelColumn:
    """One label key.

    values : (n_rows,) number of each node's value, ABSENT where it lacks the label or there is no node
    names  : value by number; values that no node has any more keep theirs
    """

    values: Ints
    names: list[str] = field(default_factory=list)
    number_of: dict[str, int] = field(default_factory=dict)

    def number(self, value: str) -> int:
        """Return the number of a value; a value that no node had before gets a new one."""
        number = self.number_of.get(value)
        if number is None:
            number = self.number_of[value] = len(self.names)
            self.names.append(value)
        return number

    def having(self, accepted: Callable[[str], bool]) -> Bools:
        """(n_rows,) nodes that have the label with a value that is accepted."""
        table = np.fromiter((accepted(name) for name in (*self.names, "")), dtype=bool, count=len(self.names) + 1)
        table[ABSENT] = False
        return np.asarray(table[self.values])


class NodeLabels:
    """Columns of all keys that were asked for; read-only for others, valid until the next change."""

    def __init__(self, nodes: Sequence[NodeInfo | None]) -> None:
        """nodes: by row, a live view that grows with the cluster."""
        self._nodes = nodes
        self._columns: dict[str, LabelColumn] = {}
        self._keys_of: dict[int, tuple[str, ...]] = {}
        self._nodes_with: dict[str, int] = {}
        for row in range(len(nodes)):
            self._count(row)

    def column(self, key: str) -> LabelColumn:
        """The column of a key. One that no node has costs next to nothing: a pod may name thousands of these."""
        column = self._columns.get(key)
        if column is None and key not in self._nodes_with:
            return LabelColumn(np.full(len(self._nodes), ABSENT, dtype=np.int64))
        if column is None:
            column = LabelColumn(np.full(0, ABSENT, dtype=np.int64))
            for row in range(len(self._nodes)):
                self._set(column, key, row)
            if len(self._columns) >= _MOST_KEYS:
                self._columns.pop(next(iter(self._columns)))
            self._columns[key] = column
        if len(column.values) < len(self._nodes):
            column.values = _grown(column.values, len(self._nodes))
        return LabelColumn(column.values[: len(self._nodes)], column.names, column.number_of)

    def node_changed(self, row: int) -> None:
        """The node of a row came, changed or went."""
        self._count(row)
        for key, column in list(self._columns.items()):
            self._set(column, key, row)
            if len(column.names) > 4 * len(self._nodes) + 1024:
                del self._columns[key]  # mostly values of nodes that went: made anew without them

    def _count(self, row: int) -> None:
        node = self._nodes[row]
        keys = () if node is None else tuple(node.labels)
        before = self._keys_of.pop(row, ())
        if keys:
            self._keys_of[row] = keys
        if keys == before:
            return
        for key in keys:
            self._nodes_with[key] = self._nodes_with.get(key, 0) + 1
        for key in before:
            self._nodes_with[key] -= 1
            if not self._nodes_with[key]:
                del self._nodes_with[key]

    def _set(self, column: LabelColumn, key: str, row: int) -> None:
        if row >= len(column.values):
            column.values = _grown(column.values, row + 1)
        node = self._nodes[row]
        value = None if node is None else node.labels.get(key)
        column.values[row] = ABSENT if value is None else column.number(value)


_MOST_KEYS = 256
"""Any client may ask for a key by writing it into a pod."""


def _grown(values: Ints, n_rows: int) -> Ints:
    larger = np.full(max(n_rows, 2 * len(values), 64), ABSENT, dtype=np.int64)
    larger[: len(values)] = values
    return larger


def rows_with_labels(terms: Iterable[NodeSelectorTerm] | None, labels: NodeLabels, n_rows: int) -> Bools:
    """(n_rows,) nodes that one of the terms matches; None = every node. Terms that ask for nothing match nothing."""
    if terms is None:
        return np.ones(n_rows, dtype=bool)
    found = np.zeros(n_rows, dtype=bool)
    for term in terms:
        if (term.expressions or term.fields) and all(requirement_matches(one, _NAMELESS) for one in term.fields):
            found |= rows_meeting(term.expressions, labels, n_rows)
    return found


_NAMELESS = {"metadata.name": ""}


def rows_meeting(requirements: Sequence[Requirement], labels: NodeLabels, n_rows: int) -> Bools:
    """(n_rows,) nodes whose labels meet all requirements."""
    found = np.ones(n_rows, dtype=bool)
    for requirement in requirements:
        found &= _meets(requirement, labels.column(requirement.key))
    return found


def _meets(requirement: Requirement, column: LabelColumn) -> Bools:
    match requirement.operator:
        case Operator.IN:
            return _has_value(requirement.values, column)
        case Operator.NOT_IN:
            return ~_has_value(requirement.values, column)
        case Operator.EXISTS:
            return np.asarray(column.values != ABSENT)
        case Operator.DOES_NOT_EXIST:
            return np.asarray(column.values == ABSENT)
        case Operator.GT | Operator.LT:
            return column.having(lambda value: requirement_matches(requirement, {requirement.key: value}))


def _has_value(values: Sequence[str], column: LabelColumn) -> Bools:
    numbers = [column.number_of[value] for value in values if value in column.number_of]
    if len(numbers) > _FEW:
        table = np.zeros(len(column.names) + 1, dtype=bool)  # the last is that of ABSENT
        table[numbers] = True
        return np.asarray(table[column.values])
    found = np.zeros(len(column.values), dtype=bool)
    for number in numbers:
        found |= column.values == number
    return found
