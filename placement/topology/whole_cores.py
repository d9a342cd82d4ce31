"""Plugin WholeCores: pods that get CPUs of their own go where these are near each other and fill physical cores.

    first   nodes whose kubelet aligns them with no more zones than it has to (policy best-effort may take more)
    then    nodes where the pod fills cores that are partly in use, then those where it breaks none, then the rest

Of a node that publishes nothing both count as even. Pods whose zone is not known yet count where the kubelet has
probably put them, in the first zone with room.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.plugins import NodePreference, Preferred
from placement.topology.aligned_needs import MILLI, AlignedNeeds, Units, aligned_needs
from placement.topology.alignment import MOST_ZONES, ZonesLeft, loose_threads, masks, pods_until_known, sets_for, walk
from placement.topology.zone_table import ZoneTable


class WholeCores(NodePreference):
    """NodePreference; under the lock of the tables."""

    name = "WholeCores"

    def __init__(self, zones: ZoneTable) -> None:
        self._zones = zones

    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        """One pod at a time where the next one might find other zones or cores."""
        zones = self._zones
        zones.catch_up()
        if len(rows) < 2 or not len(zones):
            return Preferred(rows, n_pods)
        needs = aligned_needs(pod) if (zones.is_best_effort | zones.fills_cores)[rows].any() else None
        if needs is None or not needs.cores:
            return Preferred(rows, n_pods)
        concerned = zones.is_best_effort[rows] | self._breaks(needs, rows)
        at = np.flatnonzero(concerned)
        if not len(at):
            return Preferred(rows, n_pods)
        cost = np.zeros((len(rows), 2), dtype=np.int64)
        cost[at] = self._cost(needs, rows[at])
        best = cost[np.lexsort((cost[:, 1], cost[:, 0]))[0]]
        kept = (cost == best).all(axis=1)
        return Preferred(rows[kept], min(n_pods, self._like_pods(needs, rows[kept & concerned])))

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Nothing: like pods ask for the same CPUs."""
        return None

    def _cost(self, needs: AlignedNeeds, rows: Ints) -> Ints:
        """(n_nodes, 2) zones beyond the fewest that can hold the pod; threads that are left of cores in use, afterwards
        less before."""
        zones = self._zones
        left = zones.left(rows, expected=True, most_zones=MOST_ZONES)
        extra, units = _walked((needs.pod,), needs.pod, left)
        if not needs.is_one:
            by_container, is_pod_scope = _walked(needs.running, needs.pod, left), zones.is_pod_scope[rows]
            extra = np.where(is_pod_scope, extra, by_container[0])
            units = np.where(is_pod_scope[:, None, None], units, by_container[1])
        threads = np.maximum(zones.threads[rows], 1)
        broken = loose_threads(units, left, threads) - loose_threads(left.units, left, threads)
        return np.stack(
            (np.where(zones.is_best_effort[rows], extra, 0), np.where(zones.fills_cores[rows], broken, 0)), axis=1
        )

    def _like_pods(self, needs: AlignedNeeds, rows: Ints) -> int:
        """Pods like it after which the cost of these nodes may be another; rows: of those that have a cost."""
        zones = self._zones
        if self._breaks(needs, rows).any():
            return 1
        best = rows[zones.is_best_effort[rows]]
        if not len(best):
            return 2**31
        if not needs.is_one:
            return 1
        # All in single zones: each zone holds that many, wherever the kubelet begins.
        left = zones.left(best, expected=True, most_zones=MOST_ZONES)
        return max(int(pods_until_known(needs, left, masks(left.there.shape[1], 1)).min()), 1)

    def _breaks(self, needs: AlignedNeeds, rows: Ints) -> Bools:
        """(n_nodes,) whether a pod like it leaves a core partly in use."""
        threads = np.maximum(self._zones.threads[rows], 1)
        asked = np.asarray([one.get("cpu", 0) // MILLI for one in (needs.pod, *needs.running)])
        return self._zones.fills_cores[rows] & (asked % threads[:, None] > 0).any(axis=1)


def _walked(requests: Sequence[Units], together: Units, left: ZonesLeft) -> tuple[Ints, Ints]:
    """Zones that requests take beyond the fewest, and what is left then (see Walked); together: of all requests."""
    first = walk(requests, left, sets_for(together, left))
    split = np.flatnonzero(~first.is_aligned)
    if not len(split):
        return first.extra, first.units
    n_zones, extra, units = left.there.shape[1], first.extra.copy(), first.units.copy()
    rest = walk(requests, left.of(split), masks(n_zones, n_zones))
    extra[split], units[split] = rest.extra, rest.units
    return extra, units
