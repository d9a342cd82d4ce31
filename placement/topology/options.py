"""What can be set about topology; the settings say the same under node_rules.topology."""

from __future__ import annotations

import math
from dataclasses import dataclass

from forecast.errors import InputError

__all__ = ["TopologyOptions"]


@dataclass(frozen=True, slots=True)
class TopologyOptions:
    """
    gangs           : whether the topology annotations of PodGroups are heeded
    node_topologies : whether NodeResourceTopology objects are read, where they are installed
    settle_seconds  : after a pod has started, until what its node publishes is taken to include it even if nothing was
                      published since. Twice as long as exporters wait at most by default

    Raises InputError.
    """

    gangs: bool = True
    node_topologies: bool = True
    settle_seconds: float = 120.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.settle_seconds) and self.settle_seconds >= 0):
            raise InputError(f"settle_seconds of topology is {self.settle_seconds} s: it must be 0 or above")
