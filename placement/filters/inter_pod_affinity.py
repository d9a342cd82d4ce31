"""InterPodAffinity: required affinity and anti-affinity of the pod, and the anti-affinity of pods that sit.

Source: framework/plugins/interpodaffinity/filtering.go. Pods that terminate count until they have gone, as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from kube.decoding.decoding import Kind
from kube.objects.constraints import LabelSelector, PodAffinityTerm
from kube.objects.kubernetes_version import KubernetesVersion
from kube.objects.labels import selector_matches
from kube.objects.objects import PodInfo
from placement.cluster_events import NODE_EVENTS, ClusterEvent, EventKind, Hint, is_another_node
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.rejections import found
from placement.index.affinity_terms import SittingTerm, means
from placement.index.domain_sums import PodsByRow, domain_sums, joined
from placement.index.node_labels import ABSENT

_ANY = LabelSelector()

AFFINITY: Final = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"


def as_read(term: PodAffinityTerm, version: KubernetesVersion) -> PodAffinityTerm:
    """Until 1.36, a namespace selector that fits no labels at all (NotIn, DoesNotExist) means every namespace.

    framework/plugins/interpodaffinity/plugin.go, mergeAffinityTermNamespacesIfNotEmpty, finds the namespaces meant, but
    drops the selector in a copy of the term; it is then held against no labels at all
    (https://github.com/kubernetes/kubernetes/issues/141526, mended in 1.37). Terms of pods that sit are read as
    written. A scheduler next to kube-scheduler has to pass the nodes that it passes.
    """
    selector = term.namespace_selector
    if version.keeps_namespace_selectors or selector is None or not selector.requirements:
        return term
    return replace(term, namespace_selector=_ANY) if selector_matches(selector, {}) else term


class InterPodAffinity(PlainFilter):
    """Upstream's order of reasons: a node is rejected for the first that applies, so no two rejections overlap."""

    name = "InterPodAffinity"
    reads = (Kind.NAMESPACES,)
    woken_by = NODE_EVENTS | {
        EventKind.POD_BOUND,
        EventKind.POD_LEFT,
        EventKind.POD_CHANGED,
        EventKind.NAMESPACE_CHANGED,
    }

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Only missing affinity cannot be mended by evicting pods."""
        wanted, version = pod.constraints, view.state.version
        opposed = view.index.terms.anti_affinity.meaning(pod, view.index.namespaces)
        if not (wanted.affinity or wanted.anti_affinity or opposed):
            return ()
        rejections: list[Rejection] = []
        passed = np.ones(view.n_rows, dtype=bool)
        if wanted.affinity:
            near = _near_all([as_read(term, version) for term in wanted.affinity], pod, view)
            rejections += found(~near, view, AFFINITY, preemptible=False)
            passed = near
        if wanted.anti_affinity:
            shared = _near_any(_pods_by_key([as_read(term, version) for term in wanted.anti_affinity], view), view)
            rejections += found(shared & passed, view, ANTI_AFFINITY, preemptible=True)
            passed = passed & ~shared
        if opposed:
            shared = _near_any(_opponents_by_key(opposed), view)
            rejections += found(shared & passed, view, EXISTING_ANTI_AFFINITY, preemptible=True)
        return rejections

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """Terms reach across namespaces; a closer look costs as much as an attempt."""
        return Hint.of(event.node is None or is_another_node(event))

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        """Terms of pods that sit may mean it, too; a like pod adds none."""
        return not (pod.constraints.affinity or pod.constraints.anti_affinity)

    def needs_company(self, pod: PodInfo, view: ClusterView) -> bool:
        """What the pod may be near goes with the pods that leave."""
        return bool(pod.constraints.affinity)


def _near_all(terms: Sequence[PodAffinityTerm], pod: PodInfo, view: ClusterView) -> Bools:
    """(n_rows,) nodes that have all topology keys and, in each of their domains, a pod that all terms mean.

    If there is no such pod in any domain, and the pod is one itself, it may be the first: then the keys are enough.
    """
    index = view.index
    groups: Ints = reduce(np.intersect1d, (index.groups.meant_by(term, index.namespaces) for term in terms))
    pods = index.groups.pods_of(groups)
    labelled = np.ones(view.n_rows, dtype=bool)
    near = np.ones(view.n_rows, dtype=bool)
    is_first = True
    for key in dict.fromkeys(term.topology_key for term in terms):
        column = index.labels.column(key)
        sums = domain_sums(column, pods)
        labelled &= column.values != ABSENT
        near &= sums[column.values] > 0
        is_first = is_first and not sums.any()
    if is_first and all(means(term, pod, index.namespaces) for term in terms):
        return labelled
    return near


def _near_any(pods_by_key: dict[str, PodsByRow], view: ClusterView) -> Bools:
    """(n_rows,) nodes with any of these pods in the domain of its key."""
    near = np.zeros(view.n_rows, dtype=bool)
    for key, pods in pods_by_key.items():
        column = view.index.labels.column(key)
        near |= domain_sums(column, pods)[column.values] > 0
    return near


def _pods_by_key(terms: Sequence[PodAffinityTerm], view: ClusterView) -> dict[str, PodsByRow]:
    """Pods that any of the terms means, by its topology key."""
    index = view.index
    parts: dict[str, list[PodsByRow]] = {}
    for term in terms:
        pods = index.groups.pods_of(index.groups.meant_by(term, index.namespaces))
        parts.setdefault(term.topology_key, []).append(pods)
    return {key: joined(pods) for key, pods in parts.items()}


def _opponents_by_key(terms: Sequence[SittingTerm]) -> dict[str, PodsByRow]:
    """Pods that say any of the terms, by its topology key."""
    parts: dict[str, list[PodsByRow]] = {}
    for one in terms:
        parts.setdefault(one.term.topology_key, []).append(one.pods)
    return {key: joined(pods) for key, pods in parts.items()}
