"""Plugin FailedNodes: a pod of a Job that failed on a node is not tried there again for a while, if others are left.

A Job whose pods are never restarted makes a new pod for each that fails (backoffLimit); kube-scheduler may well put it
on the node whose disk is broken. Nodes of one provider are one and the same for that. A pod that a provider rejected
is only held against it where others started: else it is the provider that gets no pods (circuit_breaker.py).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange
from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo, PodPhase
from placement.filters.filter import ClusterView
from placement.plugins import NodePreference, Preferred
from profiles.job.circuit_breaker import is_rejected

AVOIDED_SECONDS: Final = 3600.0

_MOST_OWNERS: Final = 4096
_MOST_NODES: Final = 64
"""Of one owner: a Job that fails everywhere need not be kept from everywhere."""


class FailedNodes(NodesAndPodsOnly, NodePreference):
    """Follower and NodePreference. Everything is called under the lock of the tables.

    Remembers the nodes of the last 4,096 Jobs that had failures, 64 each.
    """

    name = "FailedNodes"

    def __init__(
        self,
        state: ClusterState,
        *,
        provider_at: Callable[[str], str] = lambda node: "",
        provider_rows: Callable[[str, int], Bools] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        provider_at   : name of the provider of a node, '' = none
        provider_rows : of a provider's name and n_rows: (n_rows,) its nodes; None = there are no providers
        clock         : unix seconds
        """
        self._state, self._clock = state, clock
        self._provider_at, self._provider_rows = provider_at, provider_rows
        # By UID of the owner: (name of a provider, '') or ('', name of a node), and until when it is avoided.
        self._avoided: OrderedDict[str, OrderedDict[tuple[str, str], float]] = OrderedDict()
        self.rebuild()

    def failed(self, pod: PodInfo) -> None:
        """The pod failed, or did not start, where it is: it, or what its Job makes in its place, is to go elsewhere."""
        now = self._clock()
        self._avoid(pod, min(now, pod.finished or now) + AVOIDED_SECONDS, now)

    # NodePreference

    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        """Without the nodes that failed, unless there are no others."""
        avoided = self._avoided_by(pod)
        if not avoided:
            return Preferred(rows, n_pods)
        bad = np.zeros(view.n_rows, dtype=bool)
        for provider, node in avoided:
            if provider:
                bad |= self._rows_of(provider, view.n_rows)
            elif (row := view.state.row_of.get(node)) is not None:
                bad[row] = True
        left = rows[~bad[rows]]
        return Preferred(left if len(left) else rows, n_pods)

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Its owner, if that has had failures."""
        return pod.owner_uid if self._avoided_by(pod) else None

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        """Pods that have failed."""
        for change in changes:
            if isinstance(change, PodChange) and self._has_failed(change.pod):
                self.failed(change.pod)

    def rebuild(self) -> None:
        """From the tables as they are: what is known besides stays."""
        for pod in self._state.pods.values():
            if self._has_failed(pod):
                self.failed(pod)

    # Inside

    def _has_failed(self, pod: PodInfo) -> bool:
        """Return whether the pod failed by itself: a deleted pod is no failure of its node."""
        if pod.phase is not PodPhase.FAILED or pod.owner.kind != "Job" or not pod.node or pod.terminating:
            return False
        return not (is_rejected(pod) and self._provider_at(pod.node))

    def _avoid(self, pod: PodInfo, until: float, now: float) -> None:
        if not pod.owner_uid or not pod.node or until <= now:
            return
        nodes = self._avoided.setdefault(pod.owner_uid, OrderedDict())
        self._avoided.move_to_end(pod.owner_uid)
        provider = self._provider_at(pod.node)
        place = (provider, "") if provider else ("", pod.node)
        nodes[place] = max(until, nodes.get(place, 0.0))
        nodes.move_to_end(place)
        if len(nodes) > _MOST_NODES:
            nodes.popitem(last=False)
        if len(self._avoided) > _MOST_OWNERS:
            self._avoided.popitem(last=False)

    def _avoided_by(self, pod: PodInfo) -> Sequence[tuple[str, str]]:
        """In the order in which they failed; what is over is forgotten."""
        nodes = self._avoided.get(pod.owner_uid) if pod.owner_uid else None
        if nodes is None:
            return ()
        now = self._clock()
        # A time too far ahead is of a clock that was set back.
        for place in [place for place, until in nodes.items() if not 0 < until - now <= AVOIDED_SECONDS]:
            del nodes[place]
        if not nodes:
            del self._avoided[pod.owner_uid]
        return tuple(nodes)

    def _rows_of(self, provider: str, n_rows: int) -> Bools:
        return np.zeros(n_rows, dtype=bool) if self._provider_rows is None else self._provider_rows(provider, n_rows)
