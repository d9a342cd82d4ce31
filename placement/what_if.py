"""Tables as they would be without some pods, and exactly as they were afterwards.

    with WithoutPods(view) as what_if:
        what_if.take("uid")         filters no longer see the pod
        what_if.put_back("uid")

Requests, labels, terms, ports and volumes are whole numbers and come back to the bit, the predicted load as after any
pod that comes and goes. Virtual requests and usage measured are left alone, and no follower of the tables is notified:
nothing has happened. Under the lock of the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from cluster.tables.changes import Change
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView


class WithoutPods:
    """Context manager."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._taken: dict[str, tuple[PodInfo, AbstractContextManager[None]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for uid in list(self._taken):
            self.put_back(uid)

    def take(self, uid: str) -> None:
        """The pod is not there; nothing if there is none, or it is taken already."""
        view = self._view
        pod = view.state.pods.get(uid)
        if pod is None:
            return
        load = view.cluster.without(uid)
        load.__enter__()
        self._taken[uid] = (pod, load)
        self._follow(view.state.delete_pod(uid))

    def put_back(self, uid: str) -> None:
        """The pod is there as it was; nothing if it was not taken."""
        taken = self._taken.pop(uid, None)
        if taken is None:
            return
        pod, load = taken
        self._follow(self._view.state.put_pod(pod))
        load.__exit__(None, None, None)

    def _follow(self, changes: Sequence[Change]) -> None:
        self._view.index.apply(changes)
        for table in self._view.further:
            table.apply(changes)
