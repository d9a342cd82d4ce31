"""Score NodeAffinity: the sum of the weights of the preferred terms that a node matches.

Source: framework/plugins/nodeaffinity/node_affinity.go.
"""

from __future__ import annotations

import numpy as np

from base.arrays import Ints
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.filters.node_affinity import nodes_in_term
from placement.scores.node_score import NodeScore, default_normalize


class NodeAffinityScore(NodeScore):
    """100 for the node with the highest sum; 0 for all if none matches anything.

    A term that cannot be read counts for nothing. Upstream puts the pod back into the queue for as long as it has one.
    """

    name = "NodeAffinity"

    def score(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        sums = np.zeros(len(rows), dtype=np.int64)
        for preferred in pod.constraints.preferred_node_terms:
            # The API server takes 1 to 100; a pod that never passed through it may say anything.
            weight = min(preferred.weight, 100)
            if weight > 0:
                sums += weight * nodes_in_term(preferred.term, view)[rows]
        return default_normalize(sums, reverse=False)
