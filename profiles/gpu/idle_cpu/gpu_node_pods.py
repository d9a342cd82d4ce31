"""What pods with GPUs request of CPU and memory, by node, and which offline pods sit where; follows the cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from base.arrays import Floats, Ints
from cluster.follower import NodesAndPodsOnly
from cluster.live.charges import Departed
from cluster.predicted.array_rows import grown
from cluster.tables.changes import Change, PodChange, one_by_one
from cluster.tables.columns import request_units
from cluster.tracking import TrackedCluster
from forecast.resources import RESOURCES
from kube.objects.objects import PodInfo
from profiles.gpu.idle_cpu.offline_pods import OfflinePods

KEPT_RESOURCES = ("cpu", "memory")


class GpuNodePods(NodesAndPodsOnly):
    """Implements Follower; attach it without kinds. Everything is called under the lock of the tables."""

    def __init__(self, cluster: TrackedCluster, offline: OfflinePods) -> None:
        self._cluster, self._offline = cluster, offline
        self._requests: dict[str, tuple[int, tuple[int, int]]] = {}  # by UID of pods with GPUs: row, milli-cores, bytes
        self._offline_on: dict[int, dict[str, PodInfo]] = {}
        self._row_of: dict[str, int] = {}  # by UID of offline pods
        self._sums = np.zeros((0, len(KEPT_RESOURCES)), dtype=np.int64)
        self._departed = Departed(cluster.options.usage_window)
        self.rebuild()

    def requested_with_gpus(self) -> Ints:
        """(n_rows, len(KEPT_RESOURCES)) milli-cores and bytes that pods with GPUs request."""
        n_rows = self._cluster.state.n_rows
        self._sums = grown(self._sums, n_rows)
        return self._sums[:n_rows]

    @property
    def rows_with_offline(self) -> Collection[int]:
        """Rows of nodes where offline pods sit."""
        return self._offline_on.keys()

    def offline_on(self, row: int) -> Mapping[str, PodInfo]:
        """Offline pods on the node of a row, by UID."""
        return self._offline_on.get(row, {})

    def departed_use(self) -> Floats:
        """(n_rows, n_resources) what is still measured of pods that have left: what was expected of them.

        Of every pod that has started, whether or not there is a model.
        """
        cluster = self._cluster
        self._departed.forget(cluster.now)
        return self._departed.in_metrics(cluster.sampled, len(RESOURCES))

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        """Note where pods sit."""
        for change in one_by_one(changes):
            if isinstance(change, PodChange):
                before, after, pod = change.before, change.after, change.pod
                self._forget(pod.uid)
                if after is not None:
                    self._note(pod, after.node)
                if before is not None and (after is None or after.node != before.node) and pod.started is not None:
                    use = self._cluster.expected_use(pod).amount
                    self._departed.add(before.node, use, pod.started, self._cluster.now)

    def rebuild(self) -> None:
        """From the tables as they are."""
        state = self._cluster.state
        self._requests.clear()
        self._offline_on.clear()
        self._row_of.clear()
        self._sums = np.zeros((state.n_rows, len(KEPT_RESOURCES)), dtype=np.int64)
        for uid, seat in state.seat_of.items():
            self._note(state.pods[uid], seat.node)

    # Inside

    def _note(self, pod: PodInfo, row: int) -> None:
        if self._offline.asks_for_gpus(pod):
            cpu, memory = (request_units(kind, pod.requests.get(kind, 0.0)) for kind in KEPT_RESOURCES)
            self._requests[pod.uid] = row, (cpu, memory)
            self._sums = grown(self._sums, row + 1)
            self._sums[row] += (cpu, memory)
        elif self._offline.is_offline(pod) and not pod.stands_in:
            self._row_of[pod.uid] = row
            self._offline_on.setdefault(row, {})[pod.uid] = pod

    def _forget(self, uid: str) -> None:
        if (known := self._requests.pop(uid, None)) is not None:
            row, amounts = known
            self._sums[row] -= amounts
        elif (row_of := self._row_of.pop(uid, None)) is not None:
            on = self._offline_on[row_of]
            del on[uid]
            if not on:
                del self._offline_on[row_of]
