"""Which groups of pods does a selector choose? Labels of groups as columns, one per label key that selectors name.

A selector is held against all groups at once. A column per key costs little to keep up to date however many labels are
unique to one pod, which an index of groups by every key and value does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.constraints import LabelSelector, Operator, Requirement
from kube.objects.labels import requirement_matches
from placement.index.node_labels import ABSENT, LabelColumn

NO_GROUPS: Final = np.zeros(0, dtype=np.int64)

_MOST_KEYS: Final = 64
"""Any client may write selectors; a column of 100,000 groups takes 800 kB."""

_FEW: Final = 64
"""Number of groups up to which each is looked at by itself, without a column."""


class GroupLabels:
    """Namespaces and labels by number of the group. Numbers are small and used again."""

    def __init__(self) -> None:
        self._labels: list[Mapping[str, str] | None] = []
        self._namespace_of: list[str] = []
        self._namespaces = LabelColumn(np.full(64, ABSENT, dtype=np.int64))
        self._columns: dict[str, LabelColumn] = {}
        self._groups_with: dict[str, int] = {}

    def put(self, group: int, namespace: str, labels: Mapping[str, str]) -> None:
        """A number stands for a group from now on."""
        if group == len(self._labels):
            self._labels.append(None)
            self._namespace_of.append("")
            if group == len(self._namespaces.values):
                for short in (self._namespaces, *self._columns.values()):
                    short.values = np.concatenate([short.values, np.full(group, ABSENT, dtype=np.int64)])
        self._labels[group], self._namespace_of[group] = labels, namespace
        self._namespaces.values[group] = self._namespaces.number(namespace)
        if self._is_mostly_old(self._namespaces):
            self._namespaces = self._new_column(
                None if known is None else name for known, name in zip(self._labels, self._namespace_of, strict=True)
            )
        for key, value in labels.items():
            self._groups_with[key] = self._groups_with.get(key, 0) + 1
            column = self._columns.get(key)
            if column is not None:
                column.values[group] = column.number(value)
                if self._is_mostly_old(column):
                    del self._columns[key]

    def drop(self, group: int) -> None:
        """A number stands for no group any more."""
        labels = self._labels[group]
        self._labels[group] = None
        self._namespaces.values[group] = ABSENT
        for key in labels or ():
            self._groups_with[key] -= 1
            if not self._groups_with[key]:
                del self._groups_with[key]
                self._columns.pop(key, None)
            elif key in self._columns:
                self._columns[key].values[group] = ABSENT

    def in_namespaces(self, names: Iterable[str]) -> Bools:
        """(n_namespaces + 1,) namespaces by number, those that are named; false at ABSENT."""
        return _table(self._namespaces, names)

    def in_accepted_namespaces(self, accepted: Callable[[str], bool]) -> Bools:
        """(n_namespaces + 1,) namespaces by number, those that are accepted; false at ABSENT."""
        table = np.zeros(len(self._namespaces.names) + 1, dtype=bool)
        table[:ABSENT] = [accepted(name) for name in self._namespaces.names]
        return table

    def matching(self, selector: LabelSelector | None, namespaces: Bools) -> Ints:
        """Numbers of the groups in these namespaces that a selector chooses, ascending."""
        if selector is None:
            return NO_GROUPS
        groups: Ints | None = None
        # What chooses few comes first: the rest then looks at those only.
        for requirement in sorted(selector.requirements, key=_is_broad):
            groups = self._narrowed(groups, requirement)
        if groups is None:
            return np.flatnonzero(namespaces[self._namespaces.values[: len(self._labels)]])
        return np.asarray(groups[namespaces[self._namespaces.values[groups]]])

    def _narrowed(self, groups: Ints | None, requirement: Requirement) -> Ints | None:
        """Those among groups, None = all numbers, for which a requirement holds."""
        key = requirement.key
        if key not in self._groups_with:
            return groups if requirement_matches(requirement, {}) else NO_GROUPS
        if groups is not None and len(groups) <= _FEW:
            holds = [requirement_matches(requirement, self._labels[group] or {}) for group in groups.tolist()]
            return np.asarray(groups[np.array(holds, dtype=bool)])
        column = self._column(key)
        if groups is None:
            return np.flatnonzero(_holds(requirement, column, column.values[: len(self._labels)]))
        return np.asarray(groups[_holds(requirement, column, column.values[groups])])

    def _column(self, key: str) -> LabelColumn:
        column = self._columns.get(key)
        if column is None:
            if len(self._columns) >= _MOST_KEYS:
                del self._columns[next(iter(self._columns))]
            column = self._columns[key] = self._new_column(
                None if labels is None else labels.get(key) for labels in self._labels
            )
        return column

    def _new_column(self, values: Iterable[str | None]) -> LabelColumn:
        column = LabelColumn(np.full(len(self._namespaces.values), ABSENT, dtype=np.int64))
        numbers = [ABSENT if value is None else column.number(value) for value in values]
        column.values[: len(numbers)] = numbers
        return column

    def _is_mostly_old(self, column: LabelColumn) -> bool:
        """Whether most of its values are of groups that went."""
        return len(column.names) > 4 * len(self._labels) + 1024


def _is_broad(requirement: Requirement) -> bool:
    return requirement.operator is not Operator.IN


def _table(column: LabelColumn, names: Iterable[str]) -> Bools:
    table = np.zeros(len(column.names) + 1, dtype=bool)
    table[[column.number_of[name] for name in names if name in column.number_of]] = True
    return table


def _holds(requirement: Requirement, column: LabelColumn, values: Ints) -> Bools:
    match requirement.operator:
        case Operator.IN if len(requirement.values) == 1:
            # No label has the number -2.
            return np.asarray(values == column.number_of.get(requirement.values[0], -2))
        case Operator.IN:
            return np.asarray(_table(column, requirement.values)[values])
        case Operator.NOT_IN:
            return np.asarray(~_table(column, requirement.values)[values])
        case Operator.EXISTS:
            return np.asarray(values != ABSENT)
        case Operator.DOES_NOT_EXIST:
            return np.asarray(values == ABSENT)
        case Operator.GT | Operator.LT:  # not for pods: the API server takes no such selector
            accepted = [name for name in column.names if requirement_matches(requirement, {requirement.key: name})]
            return np.asarray(_table(column, accepted)[values])
