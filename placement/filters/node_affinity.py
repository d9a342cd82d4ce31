"""Filter NodeAffinity: nodes that the pod's nodeSelector and required node affinity leave out.

Source: framework/plugins/nodeaffinity/node_affinity.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from base.arrays import Bools
from kube.objects.constraints import NodeSelectorTerm, Operator, PodConstraints
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, Rejection
from placement.filters.node_terms import NAME_FIELD, nodes_in_any, nodes_with_labels
from placement.filters.rejections import every_node, found

_REASON: Final = "node(s) didn't match Pod's node affinity/selector"
_CONFLICT: Final = "pod affinity terms conflict"


class NodeAffinity:
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
