"""PodTopologySpread: constraints with whenUnsatisfiable DoNotSchedule, and the counts per domain that the score of
that name shares.

Source: framework/plugins/podtopologyspread/filtering.go. Constraints that a scheduler applies to pods without any are
not hard ones by default.

Source: framework/plugins/podtopologyspread/common.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.constraints import PodConstraints, TopologySpreadConstraint
from kube.objects.labels import selector_matches
from kube.objects.objects import PodInfo
from placement.cluster_events import NODE_EVENTS, ClusterEvent, EventKind, Hint, is_another_node
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.node_affinity import matching_nodes
from placement.filters.rejections import found
from placement.filters.taint_toleration import tolerated
from placement.index.domain_sums import NO_PODS, PodsByRow, domain_sums
from placement.index.node_labels import ABSENT

TOO_SKEWED: Final = "node(s) didn't match pod topology spread constraints"
NOT_LABELLED: Final = TOO_SKEWED + " (missing required label)"

_NO_DOMAIN: Final = 2**31 - 1
"""The least count over no domain (newCriticalPaths)."""


def matching_pods(constraint: TopologySpreadConstraint, pod: PodInfo, view: ClusterView) -> PodsByRow:
    """Pods of the pod's namespace that the selector chooses and that do not terminate (countPodsMatchSelector).

    Until 1.37 an empty selector counts none, although it does match the pod itself.
    """
    if constraint.selector is None:
        return NO_PODS
    if not constraint.selector.requirements and not view.state.version.counts_empty_selectors:
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


class PodTopologySpread(PlainFilter):
    """A node is rejected for the first constraint that it breaks, so the two rejections do not overlap."""

    name = "PodTopologySpread"
    woken_by = NODE_EVENTS | {EventKind.POD_BOUND, EventKind.POD_LEFT, EventKind.POD_CHANGED}

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """matching pods in the domain + 1 if the pod matches itself - least matching pods of any domain <= maxSkew."""
        hard = [constraint for constraint in pod.constraints.spread if constraint.hard]
        if not hard:
            return ()
        # A node must have the keys of all constraints for its pods to count for any.
        nodes = labelled_nodes([constraint.topology_key for constraint in hard], view)
        policies = SpreadNodes(pod.constraints, view)
        unlabelled = np.zeros(view.n_rows, dtype=bool)
        skewed = np.zeros(view.n_rows, dtype=bool)
        for constraint in hard:
            values = view.index.labels.column(constraint.topology_key).values
            lacking = (values == ABSENT) & ~skewed
            too_many = _too_many(constraint, pod, view, policies.counted(constraint, nodes))
            skewed |= too_many & ~unlabelled & ~lacking
            unlabelled |= lacking
        return (
            *found(unlabelled, view, NOT_LABELLED, preemptible=False),
            *found(skewed, view, TOO_SKEWED, preemptible=True),
        )

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """Constraints count pods of the pod's own namespace."""
        if event.pod is not None:
            return Hint.of(event.pod.namespace == pod.namespace)
        return Hint.of(is_another_node(event))

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return not any(constraint.hard for constraint in pod.constraints.spread)


def _too_many(constraint: TopologySpreadConstraint, pod: PodInfo, view: ClusterView, counted: Bools) -> Bools:
    """(n_rows,) nodes where one more pod makes the skew too large. Domains without a counted node have no pods."""
    column = view.index.labels.column(constraint.topology_key)
    pods = matching_pods(constraint, pod, view)
    is_counted = counted[pods.rows]
    sums = domain_sums(column, PodsByRow(pods.rows[is_counted], pods.amounts[is_counted]))
    domains = _distinct(column.values[counted], len(sums))
    least = int(sums[domains].min(initial=_NO_DOMAIN)) if len(domains) >= constraint.min_domains else 0
    own = 1 if selector_matches(constraint.selector, pod.labels) else 0
    return np.asarray(sums[column.values] + (own - least) > constraint.max_skew)


def _distinct(numbers: Ints, n_numbers: int) -> Ints:
    """Numbers that occur, ascending; np.unique would sort."""
    occurs = np.zeros(n_numbers, dtype=bool)
    occurs[numbers] = True
    return np.flatnonzero(occurs)
