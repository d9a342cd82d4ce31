"""The weights by which a scheduling loop adds scores up, by plugin name: kube-scheduler's, and ours as one plugin.

kube-scheduler's are those of apis/config/v1/default_plugins.go. A policy may give others (docs/use/policies.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from base.arrays import Floats, Ints
from placement.scores.catalogue import STANDARD_SCORES

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
