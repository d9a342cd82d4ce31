"""What pods declare to use beyond what they request, summed by node: for a gap that is judged by requests alone.

A low-priority pod requests little, so that it fits next to others, and may use much; its annotation
`forecast-scheduler.io/virtual-request` says so. A forecast has it already (cluster/predicted/profiles.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from base.arrays import Floats
from cluster.follower import NodesAndPodsOnly
from cluster.predicted.declared_use import declared_amounts
from cluster.predicted.growing_arrays import grown
from cluster.tables.changes import Change, PodChange, one_by_one
from cluster.tables.state import ClusterState
from forecast.resources import RESOURCES
from kube.objects.objects import PodInfo
from scheduler.profiles.online.upper_bounds import GAP_RESOURCES


class DeclaredUse(NodesAndPodsOnly):
    """Sums by node, kept up to date pod by pod. Implements cluster.follower.Follower; attach it without kinds."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._pods: dict[str, tuple[int, Floats]] = {}  # by UID: row, beyond its request
        self._sums = np.zeros((0, len(GAP_RESOURCES)))
        self.rebuild()

    def beyond_requests(self) -> Floats:
        """(n_rows, len(GAP_RESOURCES)) base units."""
        self._sums = grown(self._sums, self._state.n_rows)
        return self._sums[: self._state.n_rows]

    def apply(self, changes: Sequence[Change]) -> None:
        for change in one_by_one(changes):
            if isinstance(change, PodChange):
                self._remove(change.pod.uid)
                if change.after is not None:
                    self._add(change.pod, change.after.node)

    def rebuild(self) -> None:
        self._pods.clear()
        self._sums[:] = 0.0
        for uid, seat in self._state.seat_of.items():
            self._add(self._state.pods[uid], seat.node)

    def _add(self, pod: PodInfo, row: int) -> None:
        if not (declared := declared_amounts(pod)):
            return
        amounts = dict(declared)
        requested = [pod.requests.get(RESOURCES[r].name, 0.0) for r in GAP_RESOURCES]
        beyond = np.maximum(np.array([amounts.get(r, 0.0) for r in GAP_RESOURCES]) - requested, 0.0)
        if beyond.any():
            self._pods[pod.uid] = (row, beyond)
            self._sums = grown(self._sums, row + 1)
            self._sums[row] += beyond

    def _remove(self, uid: str) -> None:
        row, beyond = self._pods.pop(uid, (0, None))
        if beyond is not None:
            self._sums[row] -= beyond
