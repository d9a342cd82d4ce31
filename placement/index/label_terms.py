"""Which nodes have the labels that terms of a node selector ask for, all nodes at once.

As CheckNodeAffinity of a volume (component-helpers/storage/volume/helpers.go) sees a node: it has labels and no name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from base.arrays import Bools
from kube.objects.constraints import NodeSelectorTerm, Operator, Requirement
from kube.objects.selectors import requirement_matches
from placement.index.node_labels import ABSENT, LabelColumn, NodeLabels

_FEW = 8


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
