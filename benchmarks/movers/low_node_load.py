"""Koordinator's LowNodeLoad with PodMigrationJobs (pkg/descheduler/framework/plugins/loadaware, snapshot a7a1b76b).

A node is over-utilized if any resource is above the high threshold (80 %) in more than 5 consecutive rounds of a
minute. With half-hour data a node whose mean over a half hour is above has that behind it. Its pods are sorted by their
usage of the resources that exceed, largest first. A pod is evicted if some under-utilized node (all resources below
50 %) has room for its request and stays below the high threshold with its present usage. A node stops when it is below
the threshold or the head room of the under-utilized nodes, summed in base units, is used up. At most 2 pods of a node
migrate at once, and of a workload 1 (fewer than 4 replicas), 2 (4 to 10) or 10 %.

A round per half hour acts here. Memory is left out, since it makes no node hot. The replacement is placed by
kube-scheduler's defaults: the reservation that comes first in Koordinator needs its own scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from base.arrays import Bools, Floats
from benchmarks.movers.live_cluster import LiveCluster, live_cluster
from cluster.predicted.unknown_capacity import limited
from forecast.resources import HOT_RESOURCES
from rebalancer.trajectory.play import PlayedMove, Relocation
from scorer.replay.recording import Recording
from scorer.replay.running_cluster import RunningCluster

LOW, HIGH = 0.5, 0.8
PER_NODE: Final = 2
_HOT: Final = list(HOT_RESOURCES)


def per_workload(replicas: int) -> int:
    """Pods of a workload that migrate at once (`maxMigratingPerWorkload`)."""
    if replicas > 10:
        return replicas // 10
    return 2 if replicas >= 4 else 1


class LowNodeLoad:
    """Implements Mover."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def relocate(
        self, slot: int, cluster: RunningCluster, past: Mapping[int, Sequence[PlayedMove]]
    ) -> Sequence[Relocation]:
        live = live_cluster(slot, cluster, self._recording)
        share = live.node_share[:, _HOT].copy()  # falls and rises with what is planned
        low, high = np.asarray((share <= LOW).all(axis=1)), np.asarray((share > HIGH).any(axis=1))
        if not low.any() or low.all() or not high.any():
            return ()
        free = cluster.state.allocatable - cluster.state.requested
        head_room = self._head_room(share, low)
        replicas = np.bincount(self._recording.service[live.pods], minlength=self._recording.n_services)
        migrating: Counter[int] = Counter()
        result: list[Relocation] = []
        for node in np.flatnonzero(high)[np.argsort(-share[high].mean(axis=1), kind="stable")].tolist():
            left = PER_NODE
            for row in self._removable(live, node, low, share, free):
                if left == 0 or not (share[node] > HIGH).any() or (head_room <= 0).any():
                    break
                service = int(self._recording.service[live.pods[row]])
                if migrating[service] >= per_workload(int(replicas[service])):
                    continue
                result.append(Relocation(int(live.pods[row])))
                migrating[service] += 1
                left -= 1
                share[node] -= live.pod_usage[row][_HOT] * live.per_capacity[node][_HOT]
                head_room -= live.pod_usage[row][_HOT]
        return result

    def _head_room(self, share: Floats, low: Bools) -> Floats:
        """What the under-utilized nodes can take below the high threshold, in base units: (n_hot,); inf = no limit."""
        capacity = self._recording.known_capacity[low][:, _HOT]
        return np.asarray(np.where(limited(capacity), (HIGH - share[low]) * capacity, np.inf).sum(axis=0))

    def _removable(self, live: LiveCluster, node: int, low: Bools, share: Floats, free: Floats) -> list[int]:
        """Rows of the node's pods that fit on some under-utilized node, the largest first.

        As in `podFitsAnyNodeWithThreshold`, a pod that fits takes its room there at once, evicted or not.
        """
        targets = np.flatnonzero(low)
        removable = []
        for row in np.flatnonzero(live.node == node).tolist():
            uses = live.pod_usage[row][_HOT] * live.per_capacity[targets][:, _HOT]  # (n_targets, n_hot)
            requests = self._recording.requests[live.pods[row]]
            has_room = ((requests <= free[targets]) | (requests <= 0)).all(axis=1)
            fits = has_room & (share[targets] + uses <= HIGH).all(axis=1)
            if fits.any():
                first = int(fits.argmax())
                share[targets[first]] += uses[first]
                removable.append(row)
        exceeds = share[node] > HIGH
        usage = (live.pod_usage[removable][:, _HOT] * live.per_capacity[node][_HOT])[:, exceeds].sum(axis=1)
        return [removable[i] for i in np.argsort(-usage, kind="stable").tolist()]
