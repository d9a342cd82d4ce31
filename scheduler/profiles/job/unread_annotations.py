"""Pods of jobs with unreadable annotations: each is reported once, as an ignored annotation is not seen otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange
from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo
from kube.objects.pod_accounting import waits
from scheduler.profiles.job.job_annotations import terms_of

_MOST_REMEMBERED: Final = 4096
_MOST_WAITING: Final = 100


class UnreadTerms(NodesAndPodsOnly):
    """Implements cluster.follower.Follower; attached for no kinds. Under the lock of the tables.

    is_job : whether the profile places the pod
    """

    def __init__(self, state: ClusterState, is_job: Callable[[PodInfo], bool]) -> None:
        self._state, self._is_job = state, is_job
        self._told: dict[tuple[str, tuple[str, ...]], None] = {}  # by owner: pods of one template say the same
        self._waiting: list[tuple[PodInfo, str]] = []

    def take(self) -> Sequence[tuple[PodInfo, str]]:
        """Pods, and what is wrong with them, since the last time; at most a hundred."""
        taken, self._waiting = self._waiting, []
        return taken

    def apply(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if isinstance(change, PodChange) and change.pod.uid in self._state.pods:
                self._look_at(change.pod)

    def rebuild(self) -> None:
        for pod in self._state.pods.values():
            self._look_at(pod)

    def _look_at(self, pod: PodInfo) -> None:
        if not pod.annotations or not waits(pod) or not self._is_job(pod):
            return
        mistakes = terms_of(pod).mistakes
        key = (pod.owner_uid or pod.uid, mistakes)
        if not mistakes or key in self._told or len(self._waiting) >= _MOST_WAITING:
            return
        if len(self._told) >= _MOST_REMEMBERED:
            del self._told[next(iter(self._told))]
        self._told[key] = None
        self._waiting.append((pod, "; ".join(mistakes)))
