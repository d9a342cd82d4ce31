"""The cluster's changes as the queue needs them: pods of ours that wait, and events that may help others.

    tables --changes--> ClusterFollower --put, remove--> queue        pods that wait for a node
                                        --events-------> queue        see cluster_events.py

Called under the lock of the tables, after all tables have followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cluster.assuming_cluster import AssumingCluster
from cluster.tables.changes import Change, NodeAdded, NodeChanged, NodeRemoved, PodChange, one_by_one
from kube.decoding.decoding import ApiObject, Kind
from kube.objects.objects import NodeInfo, PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from placement.index.index import PlacementIndex
from scheduler.profile import PodsToPlace
from scheduler.queue.scheduling_queue import SchedulingQueue


class ClusterFollower:
    """Implements cluster.follower.Follower. To be attached after all tables that the queue's plugins read, for the
    kinds of the index, to which it hands them on."""

    def __init__(
        self,
        cluster: AssumingCluster,
        index: PlacementIndex,
        queue: SchedulingQueue,
        pods: PodsToPlace,
    ) -> None:
        self._cluster, self._index, self._queue = cluster, index, queue
        self._pods = pods
        self._seated: dict[str, PodInfo] = {}  # as they were at the last look
        self._stand_ins: set[str] = set()  # of those, UIDs of stand-ins of Reservations
        self._nodes: dict[int, NodeInfo] = {}
        self._is_trying = False

    def is_ours(self, pod: PodInfo) -> bool:
        """Whether a profile of this process places it."""
        return pod.scheduler_name in self._pods.scheduler_names

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Hide from the queue what is assumed and taken back inside."""
        self._is_trying = True
        try:
            yield
        finally:
            self._is_trying = False

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        if self._is_trying:
            return
        for change in one_by_one(changes):
            match change:
                case PodChange():
                    self._pod_changed(change)
                case NodeAdded(row) | NodeChanged(row) | NodeRemoved(row):
                    self._node_changed(row)
                case _:
                    pass

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        """Namespaces and storage objects."""
        self._index.replace(kind, objects)
        self._tell_of(kind)

    def put(self, kind: Kind, item: ApiObject) -> None:
        self._index.put(kind, item)
        self._tell_of(kind)

    def delete(self, kind: Kind, item: ApiObject) -> None:
        self._index.delete(kind, item)
        self._tell_of(kind)

    def rebuild(self) -> None:
        """The tables could not follow: everything that waits is looked at again."""
        state = self._cluster.state
        self._seated = {uid: state.pods[uid] for uid in state.seat_of}
        self._stand_ins = {uid for uid, pod in self._seated.items() if pod.stands_in}
        self._nodes = {row: node for row, node in enumerate(state.nodes) if node is not None}
        for pod in state.pods.values():
            if self.is_to_be_placed(pod):
                self._queue.put(pod)
        self._queue.happened(ClusterEvent(EventKind.TIMEOUT))

    # Inside

    def placed(self, pods: Sequence[PodInfo]) -> None:
        """Report pods that were assumed inside `trying`."""
        state = self._cluster.state
        for pod in pods:
            now = state.pods.get(pod.uid)
            if now is not None and pod.uid in state.seat_of:
                self._seated[pod.uid] = now
                if now.stands_in:
                    self._stand_ins.add(pod.uid)
                self._queue.happened(ClusterEvent(EventKind.POD_BOUND, pod=now))
        for uid in [uid for uid in self._stand_ins if uid not in state.seat_of]:
            self._leaves(uid)  # one of these pods has taken its room over, and may need less

    def look_again(self) -> None:
        """Look again at who decides about the pods that wait: nothing else has changed."""
        for pod in self._cluster.state.waiting():
            if not self.is_ours(pod):
                continue
            if self.is_to_be_placed(pod):
                self._queue.put(pod)
            elif pod.uid not in self._cluster.assumed:
                self._queue.remove(pod.uid)

    def is_to_be_placed(self, pod: PodInfo) -> bool:
        """Whether it waits, and for us."""
        return self._pods.include(pod)

    def _pod_changed(self, change: PodChange) -> None:
        pod, uid = change.pod, change.pod.uid
        if self.is_ours(pod):
            if self._cluster.state.pods.get(uid) is not None and self.is_to_be_placed(pod):
                self._queue.put(pod)
            elif uid not in self._cluster.assumed:
                self._queue.remove(uid)
        before = self._seated.get(uid)
        if change.after is None:
            if before is not None:
                self._leaves(uid)
            return
        self._seated[uid] = pod
        if pod.stands_in:
            self._stand_ins.add(uid)
        if before is None:
            self._queue.happened(ClusterEvent(EventKind.POD_BOUND, pod=pod))
        elif before is not pod and (before.labels != pod.labels or before.requests != pod.requests):
            self._queue.happened(ClusterEvent(EventKind.POD_CHANGED, pod=pod))

    def _leaves(self, uid: str) -> None:
        self._stand_ins.discard(uid)
        self._queue.happened(ClusterEvent(EventKind.POD_LEFT, pod=self._seated.pop(uid)))

    def _node_changed(self, row: int) -> None:
        nodes = self._cluster.state.nodes
        node = nodes[row] if row < len(nodes) else None
        before = self._nodes.pop(row, None)
        if node is None:
            return
        self._nodes[row] = node
        is_same = before is not None and before.name == node.name
        kind = EventKind.NODE_CHANGED if is_same else EventKind.NODE_ADDED
        self._queue.happened(ClusterEvent(kind, node=node, before=before if is_same else None))

    def _tell_of(self, kind: Kind) -> None:
        is_namespace = kind is Kind.NAMESPACES
        self._queue.happened(ClusterEvent(EventKind.NAMESPACE_CHANGED if is_namespace else EventKind.STORAGE_CHANGED))
