"""kube-scheduler's scores by plugin name, and the weights by which a scheduling loop adds them and ours up
(apis/config/v1/default_plugins.go). A policy may give others (docs/use/policies.md).

NodeResourcesFit and NodeResourcesBalancedAllocation, of weight 1 each, are scorer.scores.least_allocated and
balanced_allocation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from base.arrays import Floats, Ints
from placement.scores.image_locality import ImageLocality
from placement.scores.inter_pod_affinity import InterPodAffinityScore
from placement.scores.node_affinity import NodeAffinityScore
from placement.scores.node_score import NodeScore
from placement.scores.pod_topology_spread import PodTopologySpreadScore
from placement.scores.taint_toleration import TaintTolerationScore

STANDARD_SCORES: Final[tuple[tuple[NodeScore, int], ...]] = (
    (TaintTolerationScore(), 3),
    (NodeAffinityScore(), 2),
    (PodTopologySpreadScore(), 2),
    (InterPodAffinityScore(), 2),
    (ImageLocality(), 1),
)

FIT: Final = "NodeResourcesFit"
BALANCED: Final = "NodeResourcesBalancedAllocation"
SPREAD: Final = "PodTopologySpread"

OURS: Final = "ForecastScheduler"
"""The weighted mean of our own scores, ten for each point: what the extender adds to kube-scheduler's sum."""

PluginWeights = Mapping[str, float]
"""By plugin name. All are whole numbers but that of OURS; 0 = the score does not count."""

PLUGIN_WEIGHTS: Final[PluginWeights] = MappingProxyType(
    {FIT: 1, BALANCED: 1, **{score.name: weight for score, weight in STANDARD_SCORES}, OURS: 1}
)
"""The default weights."""

FURTHER_PLUGINS: Final = ("DynamicResources",)
"""Score plugins of single profiles, which bring a default weight of their own."""


@dataclass(frozen=True, slots=True)
class ScorePart:
    """What one plugin adds to the sum of each node. points: (n_nodes,) its weight times its score."""

    name: str
    weight: float
    points: Ints | Floats
