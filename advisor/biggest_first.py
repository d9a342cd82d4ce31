"""In which order pods are advised on: of one priority those with the highest predicted peak first.

Nodes are filled more evenly if what is hard to place comes before what fits anywhere (longest processing time first:
R. L. Graham, Bounds on Multiprocessing Timing Anomalies, SIAM J. Appl. Math. 17(2), 1969). It only reorders pods that
wait at the same time, and a pod waits for its advice for `gate_timeout` at most, so that none starves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from forecast.arrays import Floats
from forecast.resources import RESOURCES
from kube.objects.objects import PodInfo
from scheduler.queue.unit import UnitOf, unit_by_owner
from scorer.assuming_cluster import AssumingCluster
from scorer.scores.capacity import limited

_KEPT_SECONDS: Final = 10.0


class BiggestFirst:
    """Implements Units. Asked under the lock of the tables, at every event of a pod: what a controller's pods use and
    what the cluster has is kept for some seconds."""

    def __init__(self, cluster: AssumingCluster) -> None:
        self._cluster = cluster
        self._total: Floats = np.zeros(len(RESOURCES))
        self._peaks: dict[str, float] = {}
        self._kept_since = float("-inf")

    def unit_of(self, pod: PodInfo) -> UnitOf:
        """Return the pods of its controller as a unit that comes the earlier the more they use."""
        unit = unit_by_owner(pod)
        if abs(self._cluster.now - self._kept_since) > _KEPT_SECONDS:
            self._start_over()
        peak = self._peaks.get(unit.key)
        if peak is None:
            peak = self._peaks[unit.key] = self._peak(pod)
        return replace(unit, since=-peak)

    def _start_over(self) -> None:
        self._peaks, self._kept_since = {}, self._cluster.now
        predicted = self._cluster.predicted
        if predicted is not None:
            known = limited(predicted.capacity) & ~predicted.capacity_assumed
            self._total = np.where(known, predicted.capacity, 0.0).sum(axis=0)

    def _peak(self, pod: PodInfo) -> float:
        """Return the pod's predicted peak as a share of what the cluster has, of the resource where that is highest."""
        predicted = self._cluster.predicted
        if predicted is None:
            return 0.0
        profile, known = self._cluster.profile(pod), self._total > 0
        peaks = np.array([predicted.load.peak_of_pod(profile, resource) for resource in range(len(RESOURCES))])
        return float(np.max(peaks[known] / self._total[known], initial=0.0))
