"""Where a pod could go by a set of filters, and why not elsewhere, summed up as kube-scheduler does in its events."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from base.arrays import Bools
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, Filter, Rejection
from scorer.judgement import RejectedNodes


@dataclass(frozen=True, slots=True)
class RejectionCount:
    """Nodes that a filter rejects for one reason, whatever others say. preemptible: evicting pods may help."""

    filter: str
    reason: str
    nodes: int
    preemptible: bool


@dataclass(frozen=True, slots=True)
class Feasibility:
    """
    nodes      : names of those that pass everything
    n_nodes    : of the cluster
    rejections : the most frequent first
    sentence   : why the pod waits, whatever the nodes have; '' = nodes alone say it
    """

    nodes: tuple[str, ...]
    n_nodes: int
    rejections: tuple[RejectionCount, ...]
    sentence: str = ""

    def __str__(self) -> str:
        """As in "0/12 nodes are available: 8 Insufficient cpu, 4 node(s) had untolerated taint(s)."; the sentence alone
        if there is one."""
        if self.sentence:
            return self.sentence
        text = f"{len(self.nodes)}/{self.n_nodes} nodes are available"
        if not self.rejections:
            return text
        return f"{text}: {', '.join(f'{one.nodes} {one.reason}' for one in self.rejections)}"


@dataclass(frozen=True, slots=True)
class FilterVerdict:
    """What filters say of all rows.

    passes     : (n_rows,) nodes that pass everything
    rejections : with the name of the filter, in the order in which they ran
    """

    passes: Bools
    rejections: tuple[tuple[str, Rejection], ...]

    def feasibility(self, view: ClusterView) -> Feasibility:
        """The same in words; valid while the tables are as they were."""
        alive = view.state.alive
        counts = [
            RejectionCount(name, rejection.reason, n_nodes, rejection.preemptible)
            for name, rejection in self.rejections
            if (n_nodes := int((rejection.nodes & alive).sum()))
        ]
        names = tuple(sorted(view.state.names[row] for row in np.flatnonzero(self.passes).tolist()))
        in_order = tuple(sorted(counts, key=lambda count: -count.nodes))
        return Feasibility(names, int(alive.sum()), in_order, self._sentence(alive))

    def _sentence(self, alive: Bools) -> str:
        for _, rejection in self.rejections:
            if rejection.about_pod and alive.any() and rejection.nodes[alive].all():
                return rejection.reason
        return ""

    def rejected_nodes(self, view: ClusterView) -> tuple[RejectedNodes, ...]:
        """What each filter rejects and why, with the names of the nodes; the filter that rejects most comes first."""
        found = []
        for name, rejection in self.rejections:
            rows = np.flatnonzero(rejection.nodes & view.state.alive).tolist()
            if rows:
                names = tuple(sorted(view.state.names[row] for row in rows))
                found.append(RejectedNodes(name, rejection.reason, names, rejection.preemptible))
        return tuple(sorted(found, key=lambda one: -len(one.nodes)))


def verdict(
    pod: PodInfo,
    view: ClusterView,
    filters: Sequence[Filter],
    *,
    took: Callable[[str, float], None] | None = None,
) -> FilterVerdict:
    """Run the filters over all nodes. The pod must not sit anywhere: it would count against itself.

    took : called with name and seconds of each filter; None = they are not timed
    """
    passes = view.state.alive.copy()
    rejections: list[tuple[str, Rejection]] = []
    for one in filters:
        began = 0.0 if took is None else time.perf_counter()
        for rejection in one.filter(pod, view):
            passes &= ~rejection.nodes
            rejections.append((one.name, rejection))
        if took is not None:
            took(one.name, time.perf_counter() - began)
    return FilterVerdict(passes, tuple(rejections))


def feasibility(pod: PodInfo, view: ClusterView, filters: Sequence[Filter]) -> Feasibility:
    """Run the filters over all nodes and say in words what they found; see `verdict`."""
    return verdict(pod, view, filters).feasibility(view)
