"""kube-scheduler's scores that need more than requests, with their default weights (apis/config/v1/default_plugins.go).

NodeResourcesFit and NodeResourcesBalancedAllocation, of weight 1 each, are scorer.scores.least_allocated and
balanced_allocation.
"""

from __future__ import annotations

from typing import Final

from placement.scores.image_locality import ImageLocality
from placement.scores.inter_pod_affinity import InterPodAffinity
from placement.scores.node_affinity import NodeAffinity
from placement.scores.pod_topology_spread import PodTopologySpread
from placement.scores.standard_score import StandardScore
from placement.scores.taint_toleration import TaintToleration

STANDARD_SCORES: Final[tuple[tuple[StandardScore, int], ...]] = (
    (TaintToleration(), 3),
    (NodeAffinity(), 2),
    (PodTopologySpread(), 2),
    (InterPodAffinity(), 2),
    (ImageLocality(), 1),
)
