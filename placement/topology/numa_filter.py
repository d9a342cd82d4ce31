"""Filter NodeResourceTopologyMatch: the node's kubelet admits the pod, as far as NUMA zones and physical cores go.

The kubelet would turn it away there (TopologyAffinityError, SMTAlignmentError), and its controller make another for the
same node. Nodes without a NodeResourceTopology, and those whose kubelet admits every pod, pass.

Evicting pods is not known to help: the zone of a pod is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.rejections import found
from placement.topology.aligned_needs import AlignedNeeds, aligned_needs
from placement.topology.alignment import (
    MOST_ZONES,
    NOWHERE,
    Masks,
    ZonesLeft,
    container_fits,
    is_multiple,
    masks,
    pods_in_full_cores,
    pods_until_known,
    sets_for,
    walk,
)
from placement.topology.zone_table import ZoneTable


class NodeResourceTopologyMatch(PlainFilter):
    """The queue hears of `ZoneTable.on_room` as FORECAST_CHANGED."""

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
        zones = self._zones
        zones.catch_up()
        if not len(zones):
            return ()
        rows = np.flatnonzero(zones.is_single | zones.is_restricted | zones.is_full_cores)
        needs = aligned_needs(pod) if len(rows) else None
        if needs is None:
            return ()
        rejections: tuple[Rejection, ...] = ()
        for of_nodes, unfit, reason in self._unfit(needs, rows):
            if unfit.any():
                rejected = np.zeros(view.n_rows, dtype=bool)
                rejected[of_nodes] = unfit
                rejections += found(rejected, view, reason, preemptible=False)
        if rejections:
            zones.awaited()
        return rejections

    def room(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """(n_nodes,) pods like it until a node has to say which zones they took."""
        zones = self._zones
        zones.catch_up()
        room = np.full(len(rows), NOWHERE, dtype=np.int64)
        concerned = np.flatnonzero((zones.is_single | zones.is_restricted | zones.is_full_cores)[rows])
        needs = aligned_needs(pod) if len(concerned) else None
        if needs is None:
            return room
        for at, sets, left in self._by_policy(needs, rows):
            pods = pods_until_known(needs, left, sets)
            if not needs.is_one:
                pods = np.where(zones.is_pod_scope[rows[at]], pods, 1)
            room[at] = np.minimum(room[at], pods)
        full = np.flatnonzero(zones.is_full_cores[rows])
        if len(full):
            pods = pods_in_full_cores(needs, zones.left(rows[full]), zones.threads[rows[full]])
            room[full] = np.minimum(room[full], pods)
        return room

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        """Whether `room` is exact: of containers that are aligned one by one only the next pod is counted."""
        needs = None if pod.containers is None else aligned_needs(pod)
        if needs is None or needs.is_one:
            return True
        zones = self._zones
        return not ((zones.is_single | zones.is_restricted) & ~zones.is_pod_scope).any()

    def _unfit(self, needs: AlignedNeeds, rows: Ints) -> Iterator[tuple[Ints, Bools, str]]:
        """Nodes, which of them would turn the pod away, and why; rows: of those that may turn pods away."""
        zones = self._zones
        for at, sets, left in self._by_policy(needs, rows):
            of_nodes, is_pod_scope = rows[at], zones.is_pod_scope[rows[at]]
            if needs.is_one:
                fits = as_pod = walk((needs.pod,), left, sets).is_aligned
            else:
                as_pod, fits = walk((needs.pod,), left, sets).is_aligned, container_fits(needs, left, sets)
            yield of_nodes, is_pod_scope & ~as_pod, "node(s) cannot align pod"
            yield of_nodes, ~is_pod_scope & ~fits, "node(s) cannot align container"
        full = rows[zones.is_full_cores[rows]]
        if len(full) and needs.cores:
            threads = zones.threads[full]
            is_whole = is_multiple(needs, threads)
            yield full, ~is_whole, "node(s) give whole physical cores only, and the pod requests a part of one"
            has_room = pods_in_full_cores(needs, zones.left(full), threads) > 0
            yield full, is_whole & ~has_room, "node(s) had too few whole physical cores"

    def _by_policy(self, needs: AlignedNeeds, rows: Ints) -> Iterator[tuple[Ints, Masks, ZonesLeft]]:
        """Positions in `rows` of nodes with one policy, the sets of zones that it may allow, and what is left there."""
        zones = self._zones
        for is_of, is_single in ((zones.is_single, True), (zones.is_restricted, False)):
            at = np.flatnonzero(is_of[rows])
            if len(at):
                left = zones.left(rows[at], most_zones=None if is_single else MOST_ZONES)
                yield at, masks(left.there.shape[1], 1) if is_single else sets_for(needs.pod, left), left

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        if event.kind is EventKind.UNSCHEDULED_POD_CHANGED:
            return Hint.QUEUE if event.pod is None or event.pod.uid == pod.uid else Hint.SKIP
        return Hint.QUEUE if event.kind in self.woken_by else Hint.SKIP
