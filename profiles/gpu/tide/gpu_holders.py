"""Which pods hold GPUs, on which side of the tide, and what each pool has of them.

A pool is what a pod cannot leave: nodes of one card model, and of one value of `pool_label` where that is set. Pools
are numbered as they are first seen; nodes without GPUs, and those of others, are in none.

GPUs of pods and nodes as numbers, and which pool a node is of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from base.arrays import Bools, Floats, Ints
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, NodeAdded, NodeChanged, NodeRemoved, PodChange, one_by_one
from cluster.tables.state import ClusterState
from forecast.service_key import ServiceKey
from kube.objects.counted_pods import sits, waits
from kube.objects.objects import NodeInfo, PodInfo
from placement.devices.declared_devices import NodeGpus, PodGpus, model_of
from placement.node_rule_settings import DeviceOptions
from profiles.gpu.tide.training_annotations import Role, role_of

PoolOf = Callable[[NodeInfo], str | None]
"""The pool that a node with GPUs belongs to; None = it is not ours."""

_NONE: Final = -1

UNKNOWN_MODEL = "unknown"
"""Pool of nodes with GPUs whose labels do not say of which model."""


class SittingGangs(Protocol):
    """scheduler.gangs.directory.GangDirectory."""

    def minimum(self, group: str) -> int:
        """The fewest members that can run; 0 = there is no such group."""

    def sitting(self, group: str) -> Sequence[PodInfo]:
        """Members that have a node."""

    def waiting(self, group: str) -> Sequence[PodInfo]:
        """Members that have none."""


@dataclass(frozen=True, slots=True)
class GpuPod:
    """A pod that asks for GPUs. row: of its node, -1 = it waits for one; service: whose demand it is part of; workload:
    what may be scaled, which for pods of a CronJob is the Job."""

    pod: PodInfo
    gpus: float
    role: Role
    service: ServiceKey
    workload: ServiceKey
    row: int


def workload_of(pod: PodInfo, service: ServiceKey) -> ServiceKey:
    """What its replicas are a number of."""
    if pod.owner.kind in ("", "ReplicaSet", "ReplicationController") or not pod.owner.name:
        return service
    return ServiceKey(pod.namespace, pod.owner.kind, pod.owner.name)


class TideTable(NodesAndPodsOnly):
    """Implements Follower; attached for no kinds. All under the lock of the tables.

    pools : names by number; none is ever given up
    gangs : None = PodGroups are not heeded
    """

    def __init__(
        self,
        state: ClusterState,
        *,
        pod_gpus: PodGpus,
        node_gpus: NodeGpus,
        pool_of: PoolOf,
        gangs: SittingGangs | None = None,
    ) -> None:
        self.gangs = gangs
        self._state, self._pod_gpus, self._node_gpus, self._pool_of = state, pod_gpus, node_gpus, pool_of
        self.pools: list[str] = []
        self.pods: dict[str, GpuPod] = {}
        self.nodes_version = 0
        self._number: dict[str, int] = {}
        self._pool = np.full(0, _NONE, dtype=np.int64)
        self._capacity = np.zeros(0)
        self._training = np.zeros(0)
        self._others = np.zeros(0)

    # Columns, one row per node

    def pool_of_rows(self, n_rows: int) -> Ints:
        """(n_rows,) number of the pool, -1 = none. Cordoned and unready nodes stay in theirs."""
        self._grow(n_rows)
        return self._pool[:n_rows]

    # Sums, one entry per pool

    def capacity(self) -> Floats:
        """Return GPUs of nodes that take pods, and held GPUs of other nodes, (n_pools,): those cannot go to another
        pod, but their holders need no others.
        """
        return self._summed(self._capacity) + self._summed(
            np.where(self._capacity > 0, 0.0, self._training + self._others)
        )

    def largest(self) -> Floats:
        """(n_pools,) GPUs of the largest node that takes pods."""
        largest, inside = np.zeros(len(self.pools)), self._pool >= 0
        np.maximum.at(largest, self._pool[inside], self._capacity[inside])
        return largest

    def training(self) -> Floats:
        """(n_pools,) GPUs that training holds, pods that are going included."""
        return self._summed(self._training)

    def others(self) -> Floats:
        """Return GPUs that all others hold, (n_pools,)."""
        return self._summed(self._others)

    def node_changed(self, row: int) -> None:
        """The node of a row has others GPUs than before."""
        self._set_node(row)

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        for change in one_by_one(changes):
            match change:
                case PodChange():
                    self._put(change.pod, _NONE if change.after is None else change.after.node)
                case NodeAdded(row) | NodeChanged(row) | NodeRemoved(row):
                    self._set_node(row)
                case _:
                    pass

    def rebuild(self) -> None:
        self.pods.clear()
        for column in (self._training, self._others, self._capacity):
            column[:] = 0.0
        self._pool[:] = _NONE
        state = self._state
        for row in range(len(state.nodes)):
            self._set_node(row)
        for uid, pod in state.pods.items():
            seat = state.seat_of.get(uid)
            self._put(pod, _NONE if seat is None else seat.node)

    # Inside

    def _put(self, pod: PodInfo, row: int) -> None:
        known = self.pods.pop(pod.uid, None)
        if known is not None:
            self._add(known, -known.gpus)
        if pod.uid not in self._state.pods or (row == _NONE and not (waits(pod) and not pod.terminating)):
            return
        if row != _NONE and not sits(pod):
            return
        node = self._state.nodes[row] if 0 <= row < len(self._state.nodes) else None
        gpus = self._pod_gpus(pod, node)
        if gpus <= 0:
            return
        service = self._state.service_key(pod)
        # The room of a Reservation is not the tide's to scale.
        role = role_of({} if pod.stands_in else pod.annotations)
        now = GpuPod(pod, gpus, role, service, workload_of(pod, service), row)
        self.pods[pod.uid] = now
        self._add(now, gpus)

    def _add(self, one: GpuPod, gpus: float) -> None:
        if one.row == _NONE:
            return
        self._grow(one.row + 1)
        column = self._training if one.role is Role.TRAINING else self._others
        column[one.row] += gpus
        if abs(column[one.row]) < 1e-9:
            column[one.row] = 0.0  # thousandths do not add up to the bit

    def _set_node(self, row: int) -> None:
        self._grow(row + 1)
        nodes = self._state.nodes
        node = nodes[row] if row < len(nodes) else None
        pool = None if node is None else self._pool_of(node)
        gpus = 0.0 if node is None or pool is None else self._node_gpus(node)
        is_in = pool is not None and gpus > 0
        self._pool[row] = self._pool_number(pool) if pool is not None and is_in else _NONE
        takes: Bools | bool = node is not None and node.ready and not node.unschedulable
        self._capacity[row] = gpus if is_in and takes else 0.0
        self.nodes_version += 1

    def _pool_number(self, name: str) -> int:
        number = self._number.get(name)
        if number is None:
            number = self._number[name] = len(self.pools)
            self.pools.append(name)
        return number

    def _summed(self, column: Floats) -> Floats:
        inside = self._pool >= 0
        return np.bincount(self._pool[inside], weights=column[inside], minlength=len(self.pools)).astype(np.float64)

    def _grow(self, n_rows: int) -> None:
        have = len(self._pool)
        if n_rows <= have:
            return
        more = max(n_rows, 2 * have, 64) - have
        self._pool = np.concatenate([self._pool, np.full(more, _NONE, dtype=np.int64)])
        self._capacity, self._training, self._others = (
            np.concatenate([column, np.zeros(more)]) for column in (self._capacity, self._training, self._others)
        )


def pool_of(options: DeviceOptions, pool_label: str, is_ours: Callable[[NodeInfo], bool]) -> PoolOf:
    """The card model, and the label's value behind a slash where `pool_label` is set and the node has it."""

    def pool(node: NodeInfo) -> str | None:
        if not is_ours(node):
            return None
        model = model_of(node, options) or UNKNOWN_MODEL
        part = node.labels.get(pool_label, "") if pool_label else ""
        return f"{model}/{part}" if part else model

    return pool
