"""InterPodAffinity: preferred terms of the pod, and what pods that sit say of it.

Source: framework/plugins/interpodaffinity/scoring.go, with the default arguments: hardPodAffinityWeight 1,
ignorePreferredTermsOfExistingPods false.
"""

from __future__ import annotations

import numpy as np

from base.arrays import Ints
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.filters.inter_pod_affinity import as_read
from placement.index.domain_sums import PodsByRow, domain_sums, joined
from placement.scores.node_score import MAX_NODE_SCORE, NodeScore


class InterPodAffinityScore(NodeScore):
    """Sum of the weights of all terms met in the node's domains, stretched so that the worst has 0 and the best 100."""

    name = "InterPodAffinity"

    def score(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """Return the score of each row; all 0 if the terms do not distinguish nodes."""
        sums = np.zeros(len(rows), dtype=np.int64)
        for key, pods in _weights_by_key(pod, view).items():
            column = view.index.labels.column(key)
            sums += domain_sums(column, pods)[column.values[rows]]
        span = int(np.ptp(sums)) if len(rows) else 0
        if not span:
            return np.zeros(len(rows), dtype=np.int64)
        return np.asarray(MAX_NODE_SCORE * ((sums - sums.min()) / span), dtype=np.int64)


def _weights_by_key(pod: PodInfo, view: ClusterView) -> dict[str, PodsByRow]:
    """By topology key: rows of pods that match the pod's terms, or whose terms match it, with the terms' weights."""
    index, wanted = view.index, pod.constraints
    parts: dict[str, list[PodsByRow]] = {}
    for preferred, sign in (
        *((one, 1) for one in wanted.preferred_affinity),
        *((one, -1) for one in wanted.preferred_anti_affinity),
    ):
        pods = index.groups.pods_of(
            index.groups.meant_by(as_read(preferred.term, view.state.version), index.namespaces)
        )
        weighted = PodsByRow(pods.rows, pods.amounts * (sign * preferred.weight))
        parts.setdefault(preferred.term.topology_key, []).append(weighted)
    for one in index.terms.preferences.meaning(pod, index.namespaces):
        parts.setdefault(one.term.topology_key, []).append(one.pods)
    return {key: joined(pods) for key, pods in parts.items()}
