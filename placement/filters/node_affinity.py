"""Filter NodeAffinity: nodes that the pod's nodeSelector and required node affinity leave out; and which nodes match
the terms of a node selector.

Source: framework/plugins/nodeaffinity/node_affinity.go.

Source: staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go and
staging/src/k8s.io/apimachinery/pkg/labels/selector.go. Evaluated per distinct value of a label, not per node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from base.arrays import Bools
from kube.objects.constraints import NodeSelectorTerm, Operator, PodConstraints, Requirement
from kube.objects.labels import is_label_value, is_qualified_name, whole_number
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, NodeFilter, Rejection
from placement.filters.rejections import every_node, found
from placement.index.node_labels import ABSENT, LabelColumn

NAME_FIELD: Final = "metadata.name"
"""The only field a node has."""

_REASON: Final = "node(s) didn't match Pod's node affinity/selector"
_CONFLICT: Final = "pod affinity terms conflict"


def nodes_in_any(terms: Iterable[NodeSelectorTerm], view: ClusterView) -> Bools:
    """(n_rows,) nodes that match at least one term; no terms match nothing."""
    nodes = np.zeros(view.n_rows, dtype=bool)
    for term in dict.fromkeys(terms):
        nodes |= nodes_in_term(term, view)
    return nodes


def nodes_in_term(term: NodeSelectorTerm, view: ClusterView) -> Bools:
    """(n_rows,) nodes that match all of a term.

    A term that says nothing matches nothing, and so does one with a requirement that cannot be: upstream calls it a
    parse error, which counts against the term only.
    """
    if not (term.expressions or term.fields):
        return np.zeros(view.n_rows, dtype=bool)
    if not all(map(_is_label_requirement, term.expressions)) or not all(map(_is_field_requirement, term.fields)):
        return np.zeros(view.n_rows, dtype=bool)
    nodes = np.ones(view.n_rows, dtype=bool)
    for requirement in term.fields:
        nodes &= _with_field(requirement, view)
    for requirement in term.expressions:
        nodes &= _with_label(requirement, view)
    return nodes


def nodes_with_labels(labels: Iterable[tuple[str, str]], view: ClusterView) -> Bools:
    """(n_rows,) nodes that have all labels with these very values: a pod's nodeSelector."""
    nodes = np.ones(view.n_rows, dtype=bool)
    for key, value in labels:
        nodes &= _in(view.index.labels.column(key), (value,))
    return nodes


def _with_label(requirement: Requirement, view: ClusterView) -> Bools:
    column = view.index.labels.column(requirement.key)
    match requirement.operator:
        case Operator.IN:
            return _in(column, requirement.values)
        case Operator.NOT_IN:
            return ~_in(column, requirement.values)
        case Operator.EXISTS:
            return np.asarray(column.values != ABSENT)
        case Operator.DOES_NOT_EXIST:
            return np.asarray(column.values == ABSENT)
        case Operator.GT | Operator.LT:
            return _beyond(column, requirement)


def _in(column: LabelColumn, values: Iterable[str]) -> Bools:
    # Values that no node has are left out before anything is compared: a pod may list thousands.
    numbers = [number for number in map(column.number_of.get, values) if number is not None]
    if len(numbers) == 1:
        return np.asarray(column.values == numbers[0])
    accepted = np.zeros(len(column.names) + 1, dtype=bool)  # the last is where ABSENT = -1 points to
    accepted[numbers] = True
    return np.asarray(accepted[column.values])


def _beyond(column: LabelColumn, requirement: Requirement) -> Bools:
    limit = whole_number(requirement.values[0])
    assert limit is not None  # _is_label_requirement
    is_greater = requirement.operator is Operator.GT

    def accepted(value: str) -> bool:
        number = _whole_number(value)
        return number is not None and (number > limit if is_greater else number < limit)

    return column.having(accepted)


_whole_number = lru_cache(maxsize=16384)(whole_number)


def _with_field(requirement: Requirement, view: ClusterView) -> Bools:
    """A field that nodes do not have is empty."""
    wanted = requirement.values[0]
    if requirement.key == NAME_FIELD:
        nodes = np.zeros(view.n_rows, dtype=bool)
        row = view.state.row_of.get(wanted)
        if row is not None:
            nodes[row] = True
    else:
        nodes = np.full(view.n_rows, not wanted)
    return nodes if requirement.operator is Operator.IN else ~nodes


def _is_field_requirement(requirement: Requirement) -> bool:
    return requirement.operator in (Operator.IN, Operator.NOT_IN) and len(requirement.values) == 1


def _is_label_requirement(requirement: Requirement) -> bool:
    """NewRequirement of apimachinery. The API server lets a few of these through, such as Gt with a word."""
    values = requirement.values
    match requirement.operator:
        case Operator.IN | Operator.NOT_IN:
            is_complete = bool(values)
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            is_complete = not values
        case Operator.GT | Operator.LT:
            is_complete = len(values) == 1 and whole_number(values[0]) is not None
    return is_complete and is_qualified_name(requirement.key) and all(map(is_label_value, values))


class NodeAffinity(NodeFilter):
    """Unresolvable: evicting pods changes no label."""

    name = "NodeAffinity"

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Evaluated per distinct value of the labels named."""
        constraints = pod.constraints
        if not constraints.node_selector and constraints.required_node_terms is None:
            return ()
        if _conflict(constraints.required_node_terms or ()):
            return every_node(view, _CONFLICT)
        return found(~matching_nodes(constraints, view), view, _REASON, preemptible=False)

    def lasting(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        return self.filter(pod, view)

    def lasting_key(self, pod: PodInfo) -> Hashable:
        return pod.constraints.node_selector, pod.constraints.required_node_terms


def matching_nodes(constraints: PodConstraints, view: ClusterView) -> Bools:
    """(n_rows,) nodes that the nodeSelector and the required terms allow (GetRequiredNodeAffinity)."""
    if constraints.node_selector:
        nodes = nodes_with_labels(constraints.node_selector, view)
    else:
        nodes = np.ones(view.n_rows, dtype=bool)
    if constraints.required_node_terms is not None:
        nodes &= nodes_in_any(constraints.required_node_terms, view)
    return nodes


def _conflict(terms: Sequence[NodeSelectorTerm]) -> bool:
    """Whether every term asks for two nodes at once (PreFilter)."""
    return bool(terms) and all(_names_two_nodes(term) for term in terms)


def _names_two_nodes(term: NodeSelectorTerm) -> bool:
    named = [set(one.values) for one in term.fields if one.key == NAME_FIELD and one.operator is Operator.IN]
    return bool(named) and not set.intersection(*named)
