"""Which node each pod got that was advised on, and why it is another one than was advised. Follows the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Final

from advisor.following import Following
from cluster.assuming_cluster import AssumingCluster
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange, one_by_one
from kube.objects.objects import PodInfo
from placement.decisions.recorder import DecisionRecorder
from placement.feasibility import verdict
from placement.filters.filter import ClusterView, Filter
from placement.what_if import WithoutPods

_KUBE_SCHEDULER: Final = "all filters that are known here pass: kube-scheduler decided otherwise"


class BoundPods(NodesAndPodsOnly):
    """Implements Follower, to be attached after the tables of the view.

    filters_of : all filters that a pod has to pass
    following  : learns where pods went that were nominated; None = no part asks
    """

    def __init__(
        self,
        cluster: AssumingCluster,
        view: ClusterView,
        recorder: DecisionRecorder,
        filters_of: Callable[[PodInfo], Sequence[Filter]],
        following: Following | None = None,
    ) -> None:
        self._cluster, self._view, self._recorder, self._filters_of = cluster, view, recorder, filters_of
        self._following = following
        self._awaited: set[str] = set()  # assumed at the last look

    def apply(self, changes: Sequence[Change]) -> None:
        """Report pods that the watch shows on a node, each once: a running pod changes often."""
        for change in one_by_one(changes):
            if not isinstance(change, PodChange):
                continue
            uid = change.pod.uid
            if uid in self._cluster.assumed:
                self._awaited.add(uid)
                continue
            # One that was bound where it was assumed had its seat before.
            is_new = change.before is None or uid in self._awaited
            self._awaited.discard(uid)
            if is_new and change.after is not None:
                why = cache(partial(self._why_not_on, change.pod))  # two ask, and it takes all filters
                self._recorder.bound(change.pod, lambda advice, why=why: why(advice.best))  # type: ignore[misc]
                if self._following is not None:
                    self._following.bound(uid, change.pod.node, lambda node, why=why: why(node) != _KUBE_SCHEDULER)  # type: ignore[misc]

    def rebuild(self) -> None:
        """Look anew at what is assumed. Pods that were bound unseen expire in the recorder."""
        self._awaited = set(self._cluster.assumed.uids())

    def _why_not_on(self, pod: PodInfo, node: str | None) -> str:
        """As the cluster is now: what kept the pod from the node may have gone again."""
        row = None if node is None else self._view.state.row_of.get(node)
        if row is None:
            return f"node {node} is gone"
        waiting, at = replace(pod, node=""), self._view.state.row_of.get(pod.node)
        with WithoutPods(self._view) as without:
            # Where it sits it would keep itself away, by a term or a volume. A row without a Node would be given up.
            if at is not None and self._view.state.alive[at]:
                without.take(pod.uid)
            found = verdict(waiting, self._view, self._filters_of(waiting))
        for name, rejection in found.rejections:
            if rejection.nodes[row]:
                return f"{name}: {rejection.reason}"
        return _KUBE_SCHEDULER
