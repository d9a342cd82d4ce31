"""What PodTopologySpread counts, for its filter and its score: matching pods per domain, and nodes that count.

Source: framework/plugins/podtopologyspread/common.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from base.arrays import Bools
from kube.objects.constraints import PodConstraints, TopologySpreadConstraint
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.filters.node_affinity import matching_nodes
from placement.filters.taint_toleration import tolerated
from placement.index.node_labels import ABSENT
from placement.index.topology import NO_PODS, PodsByRow


def matching_pods(constraint: TopologySpreadConstraint, pod: PodInfo, view: ClusterView) -> PodsByRow:
    """Pods of the pod's namespace that the selector chooses and that do not terminate (countPodsMatchSelector).

    An empty selector counts none, although it does match the pod itself.
    """
    if constraint.selector is None or not constraint.selector.requirements:
        return NO_PODS
    groups = view.index.groups
    return groups.pods_of(groups.chosen_by(constraint.selector, pod.namespace), leaving=False)


def labelled_nodes(keys: Sequence[str], view: ClusterView) -> Bools:
    """(n_rows,) nodes that have all these labels (nodeLabelsMatchSpreadConstraints)."""
    nodes = view.state.alive.copy()
    for key in keys:
        nodes &= view.index.labels.column(key).values != ABSENT
    return nodes


class SpreadNodes:
    """Nodes whose pods count, by the inclusion policies of a constraint (matchNodeInclusionPolicies).

    What several constraints ask for is worked out once.
    """

    def __init__(self, said: PodConstraints, view: ClusterView) -> None:
        self._said, self._view = said, view
        self._by_affinity: Bools | None = None
        self._by_taints: Bools | None = None

    def counted(self, constraint: TopologySpreadConstraint, nodes: Bools) -> Bools:
        """(n_rows,) those of `nodes` that the policies leave in."""
        said = self._said
        if constraint.honor_node_affinity and (said.node_selector or said.required_node_terms is not None):
            if self._by_affinity is None:
                self._by_affinity = matching_nodes(said, self._view)
            nodes = nodes & self._by_affinity
        if constraint.honor_node_taints:
            if self._by_taints is None:
                self._by_taints = tolerated(said.tolerations, self._view, effects=("NoSchedule", "NoExecute"))
            nodes = nodes & self._by_taints
        return np.asarray(nodes)
