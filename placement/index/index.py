"""The index as a whole: hands each change of the cluster to the tables that it concerns, and keeps columns until what
they follow from changes.

    ClusterState --changes--> PlacementIndex --> NodeLabels, NodeTaints, NodeImages, NodeFeatures   by row
                                             --> PodGroups, AffinityTerms             pods that sit, by labels and row
                                             --> HostPorts                            pods that take ports of the node
    Namespaces, volumes, claims, ... --------> Namespaces, Storage

Only pods on a node count: finished ones do not, terminating ones do (marked where Kubernetes treats them apart).
Everything is called under the lock of the scorer's tables.

Pods of many services request the same few sizes. A batch changes as many nodes as it has pods, so the next service of
the same size has dozens of rows to work out instead of thousands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import Any, Final

from base.arrays import Ints
from cluster.tables.changes import Change, NodeAdded, NodeChanged, NodeRemoved, PodChange, PodsSeated
from cluster.tables.state import ClusterState
from kube.decoding.decoding import ApiObject, Kind
from kube.objects.objects import NamespaceInfo, PodInfo
from placement.index.affinity_terms import AffinityTerms
from placement.index.namespaces import Namespaces
from placement.index.node_facts import HostPorts, NodeFeatures, NodeImages, NodeTaints
from placement.index.node_labels import NodeLabels
from placement.index.pods_by_labels import PodGroups
from placement.index.storage import STORAGE_KINDS, Storage

_MOST: Final = 64
"""Columns that are kept, those asked for last: of 20,000 nodes 10 MB."""

WorkOut = Callable[[Ints | slice], Ints]
"""(n,) whole numbers of these rows, by allocatable and requested alone."""

INDEXED_KINDS: Final = (Kind.NAMESPACES, *STORAGE_KINDS)
"""Objects that the index needs in addition to those of the scorer."""


class KeptColumns:
    """Needs no changes handed on: the state says which rows have changed."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._columns: dict[Hashable, tuple[Ints, int]] = {}  # values, and as of when

    def __contains__(self, key: Hashable) -> bool:
        """Whether a column is kept, up to date or not."""
        return key in self._columns

    def column(self, key: Hashable, work_out: WorkOut) -> Ints:
        """(n_rows,) as the tables are now, to be read only. key: names what `work_out` works out."""
        state = self._state
        now, n_rows = state.rows_version, state.n_rows
        kept = self._columns.pop(key, None)
        if kept is None or len(kept[0]) != n_rows:
            values = work_out(slice(0, n_rows))
        else:
            values, as_of = kept
            rows = state.rows_changed_since(as_of)
            if 2 * len(rows) > n_rows:
                values = work_out(slice(0, n_rows))
            elif len(rows):
                values[rows] = work_out(rows)
        self._columns[key] = values, now
        if len(self._columns) > _MOST:
            del self._columns[next(iter(self._columns))]
        return values


class PlacementIndex:
    """Implements cluster.follower.Follower. All that is public is to be read only.

    state : the cluster's own tables, whose rows are used here
    kept  : what was worked out from the columns of the state
    """

    def __init__(
        self, state: ClusterState, *, nodes_only: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start from what the state holds now.

        nodes_only : pods are not followed, their tables stay empty
        clock      : seconds, by which failures are forgotten
        """
        self.state, self._nodes_only = state, nodes_only
        self.namespaces, self.storage = Namespaces(), Storage(clock)
        self.kept = KeptColumns(state)
        self._counted: dict[str, tuple[int, PodInfo]] = {}
        self._make()

    def rebuild(self) -> None:
        """Make all but namespaces and storage objects anew from the state."""
        for row, pod in self._counted.values():
            if pod.volumes:
                self.storage.count(row, pod, -1)
        self._make()

    def _make(self) -> None:
        state = self.state
        self.labels, self.taints, self.images = NodeLabels(state.nodes), NodeTaints(), NodeImages()
        self.features = NodeFeatures()
        self.groups, self.terms, self.ports = PodGroups(), AffinityTerms(), HostPorts()
        self._counted = {}
        for row in range(state.n_rows):
            self._node_changed(row)
        for uid, seat in () if self._nodes_only else state.seat_of.items():
            self._pod_changed(uid, seat.node, state.pods[uid])

    def apply(self, changes: Sequence[Change]) -> None:
        """Follow what happened to nodes and pods."""
        for change in changes:
            match change:
                case NodeAdded(row) | NodeChanged(row) | NodeRemoved(row):
                    self._node_changed(row)
                case PodChange(pod, _, after) if not self._nodes_only:
                    self._pod_changed(pod.uid, None if after is None else after.node, pod)
                case PodsSeated(pods, seats) if not self._nodes_only:
                    self._pods_seated(pods, [seat.node for seat in seats])
                case _:
                    pass

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        """A complete list of namespaces or storage objects."""
        if kind is Kind.NAMESPACES:
            self.namespaces.replace([one for one in objects if isinstance(one, NamespaceInfo)])
        else:
            self.storage.replace(kind, objects)

    def put(self, kind: Kind, item: ApiObject) -> None:
        """A namespace or storage object is new or has changed."""
        if isinstance(item, NamespaceInfo):
            self.namespaces.put(item)
        else:
            self.storage.put(kind, item)

    def delete(self, kind: Kind, item: ApiObject) -> None:
        """A namespace or storage object is gone."""
        if isinstance(item, NamespaceInfo):
            self.namespaces.delete(item)
        else:
            self.storage.delete(kind, item)

    def _node_changed(self, row: int) -> None:
        # Changes come in batches; the row may have been freed, or taken again, by a later one of the same batch.
        node = self.state.nodes[row]
        self.labels.node_changed(row)
        self.taints.node_changed(row, node)
        self.images.node_changed(row, node)
        self.features.node_changed(row, node)

    def _pod_changed(self, uid: str, row: int | None, pod: PodInfo) -> None:
        """Count a pod where it sits now, and no longer where, and as what, it was counted before."""
        before = self._counted.pop(uid, None)
        if before is not None and before[0] == row and counts_the_same(before[1], pod):
            self._counted[uid] = (row, pod)
            return
        if before is not None:
            self._count(*before, -1)
        if row is not None:
            self._counted[uid] = (row, pod)
            self._count(row, pod, 1)

    def _pods_seated(self, pods: Sequence[PodInfo], rows: Sequence[int]) -> None:
        """Count alike pods, of which none is counted yet, where they sit from now on."""
        self._counted.update(zip([pod.uid for pod in pods], zip(rows, pods, strict=True), strict=True))
        like = pods[0]
        self.groups.count_all(rows, like)
        if like.constraints.affects_others:
            self.terms.count_all(rows, like)
        for row, pod in zip(rows, pods, strict=True) if like.host_ports or like.volumes else ():
            self.ports.count(row, pod, 1)
            if pod.volumes:
                self.storage.count(row, pod, 1)

    def _count(self, row: int, pod: PodInfo, sign: int) -> None:
        self.groups.count(row, pod, sign)
        if pod.constraints.affects_others:
            self.terms.count(row, pod, sign)
        if pod.host_ports:
            self.ports.count(row, pod, sign)
        if pod.volumes:
            self.storage.count(row, pod, sign)


def counts_the_same(a: PodInfo, b: PodInfo) -> bool:
    """Whether two states of a pod count as the same in all tables of a node."""
    return bool(_counted_as(a) == _counted_as(b))


_counted_as: Final[Callable[[PodInfo], tuple[Any, ...]]] = attrgetter(
    "labels", "namespace", "terminating", "owner_uid", "owner", "constraints", "host_ports", "volumes"
)
"""All that `_count` reads of a pod."""
