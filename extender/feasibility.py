"""Where a pod could go by a set of filters, and why not elsewhere, summed up as kube-scheduler does in its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.filters.filter import ClusterView, Filter
from scorer.cluster.objects import PodInfo

__all__ = ["Feasibility", "RejectionCount", "feasibility"]


@dataclass(frozen=True, slots=True)
class RejectionCount:
    """Nodes that a filter rejects for one reason, whatever others say. preemptible: evicting pods may help."""

    filter: str
    reason: str
    nodes: int
    preemptible: bool


@dataclass(frozen=True, slots=True)
class Feasibility:
    """nodes: names of those that pass everything; n_nodes: of the cluster; rejections: the most frequent first."""

    nodes: tuple[str, ...]
    n_nodes: int
    rejections: tuple[RejectionCount, ...]

    def __str__(self) -> str:
        """As in "0/12 nodes are available: 8 Insufficient cpu, 4 node(s) had untolerated taint(s)."."""
        text = f"{len(self.nodes)}/{self.n_nodes} nodes are available"
        if not self.rejections:
            return text
        return f"{text}: {', '.join(f'{one.nodes} {one.reason}' for one in self.rejections)}"


def feasibility(pod: PodInfo, view: ClusterView, filters: Sequence[Filter]) -> Feasibility:
    """Run the filters over all nodes. The pod must not sit anywhere: it would count against itself."""
    alive = view.state.alive
    passes = alive.copy()
    counts: list[RejectionCount] = []
    for one in filters:
        for rejection in one.filter(pod, view):
            hit = rejection.nodes & alive
            passes &= ~hit
            if n_nodes := int(hit.sum()):
                counts.append(RejectionCount(one.name, rejection.reason, n_nodes, rejection.preemptible))
    names = tuple(sorted(view.state.names[row] for row in np.flatnonzero(passes).tolist()))
    return Feasibility(names, int(alive.sum()), tuple(sorted(counts, key=lambda count: -count.nodes)))
