"""Filter NodeResourceTopologyMatch: a pod fits into single NUMA zones of nodes whose kubelet insists on that.

The kubelet would turn it away there (TopologyAffinityError), and its controller make another for the same node. Nodes
without a NodeResourceTopology, and those with other policies, are let through.

Evicting pods is not known to help: what zone a pod has nobody says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from extender.filters.filter import ClusterView, Rejection
from extender.filters.found import found
from extender.framework.events import ClusterEvent, EventKind
from extender.framework.plugins import Hint
from extender.topology.alignment import NOWHERE, aligned_needs, container_fits, pod_fits, pods_in_one_zone
from extender.topology.zone_table import ZoneTable
from forecast.arrays import Ints
from scorer.cluster.objects import PodInfo

__all__ = ["NodeResourceTopologyMatch"]


class NodeResourceTopologyMatch:
    """Implements CountsRoom and EnqueueExtensions, too. `ZoneTable.on_room` is to be told to the queue as
    FORECAST_CHANGED."""

    name = "NodeResourceTopologyMatch"
    woken_by = frozenset(
        {
            EventKind.NODE_ADDED,
            EventKind.NODE_CHANGED,
            EventKind.POD_LEFT,
            EventKind.UNSCHEDULED_POD_CHANGED,
            EventKind.FORECAST_CHANGED,  # on_room
        }
    )

    def __init__(self, zones: ZoneTable) -> None:
        """zones: attached to the same tables, and in `further` of the view that preemption tries out things in."""
        self._zones = zones

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Reasons as upstream."""
        zones = self._zones
        zones.catch_up()
        rows = np.flatnonzero(zones.is_single)
        needs = aligned_needs(pod) if len(rows) else None
        if needs is None:
            return ()
        is_pod_scope = zones.is_pod_scope
        rejections: tuple[Rejection, ...] = ()
        for fits, of_scope, reason in (
            (pod_fits, rows[is_pod_scope[rows]], "node(s) cannot align pod"),
            (container_fits, rows[~is_pod_scope[rows]], "node(s) cannot align container"),
        ):
            if len(of_scope):
                rejected = np.zeros(view.n_rows, dtype=bool)
                rejected[of_scope] = ~fits(needs, zones.left(of_scope))
                rejections += found(rejected, view, reason, preemptible=False)
        if rejections:
            zones.awaited()
        return rejections

    def room(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """(n_nodes,) pods like it until a node has to say which zones they took. See CountsRoom."""
        zones = self._zones
        zones.catch_up()
        room = np.full(len(rows), NOWHERE, dtype=np.int64)
        single = np.flatnonzero(zones.is_single[rows])
        needs = aligned_needs(pod) if len(single) else None
        if needs is not None:
            of_single = rows[single]
            room[single] = pods_in_one_zone(needs, zones.left(of_single), zones.is_pod_scope[of_single])
        return room

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """See EnqueueExtensions."""
        if event.kind is EventKind.UNSCHEDULED_POD_CHANGED:
            return Hint.QUEUE if event.pod is None or event.pod.uid == pod.uid else Hint.SKIP
        return Hint.QUEUE if event.kind in self.woken_by else Hint.SKIP
