"""Pods whose volumes are being bound, and the callbacks for when that is over.

Looked at again whenever the tables change for one of them: nothing is polled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, NodeChanged, NodeRemoved, PodChange
from kube.objects.storage_objects import ClaimInfo, VolumeInfo
from placement.filters.filter import ClusterView
from placement.status import Status
from scheduler.volumes.volume_progress import Versions, progress
from scheduler.volumes.volume_writes import VolumeChoice


@dataclass(frozen=True, slots=True, eq=False)
class _Wait:
    choice: VolumeChoice
    written: Versions
    tell: Callable[[Status], None]

    def depends_on(self) -> Iterable[Hashable]:
        """UID of the pod, names of volumes, namespaces and names of claims."""
        yield self.choice.pod.uid
        yield from (one.volume.name for one in self.choice.existing)
        for one in self.choice.all:
            yield one.claim.namespace, one.claim.name


class VolumeWaits(NodesAndPodsOnly):
    """Implements cluster.follower.Follower and listens to Storage. Everything is called under the lock of the
    tables.
    """

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._waits: dict[str, _Wait] = {}  # by UID
        self._by_key: dict[Hashable, dict[str, None]] = {}
        view.index.storage.listeners.append(self._storage_changed)

    def __len__(self) -> int:
        return len(self._waits)

    def add(self, choice: VolumeChoice, written: Versions, tell: Callable[[Status], None]) -> None:
        """Call `tell` once when the binding is over, perhaps at once. tell: quick, and takes no lock."""
        wait = _Wait(choice, written, tell)
        self.remove(choice.pod.uid)
        self._waits[choice.pod.uid] = wait
        for key in wait.depends_on():
            self._by_key.setdefault(key, {})[choice.pod.uid] = None
        self._look([choice.pod.uid])

    def remove(self, uid: str) -> None:
        """Drop the callback of a pod."""
        wait = self._waits.pop(uid, None)
        for key in () if wait is None else set(wait.depends_on()):
            waiting = self._by_key[key]
            del waiting[uid]
            if not waiting:
                del self._by_key[key]

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        """Pods that go, nodes that go."""
        if not self._waits:
            return
        nodes = self._view.state.nodes
        for change in changes:
            match change:
                case PodChange(pod):
                    self._look([pod.uid])
                case NodeChanged(row) | NodeRemoved(row) if row >= len(nodes) or nodes[row] is None:
                    self.rebuild()
                case _:
                    pass

    def rebuild(self) -> None:
        self._look(list(self._waits))

    # Inside

    def _storage_changed(self, item: ClaimInfo | VolumeInfo) -> None:
        if not self._waits:
            return
        keys: list[Hashable]
        if isinstance(item, ClaimInfo):
            keys = [(item.namespace, item.name)]
        else:
            keys = [item.name] if item.claim is None else [item.name, (item.claim.namespace, item.claim.name)]
        self._look(list(dict.fromkeys(uid for key in keys for uid in self._by_key.get(key, ()))))

    def _look(self, uids: Sequence[str]) -> None:
        for uid in uids:
            wait = self._waits.get(uid)
            status = None if wait is None else progress(wait.choice, wait.written, self._view)
            if wait is not None and status is not None:
                self.remove(uid)
                wait.tell(status)
