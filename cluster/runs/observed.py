"""Run times of pods that finish and Jobs that complete, as the tables report them, for the run times of their
services.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from cluster.follower import NodesAndPodsOnly
from cluster.runs.run_times import RunTimes
from cluster.tables.changes import Change, JobChange, PodChange
from cluster.tables.state import ClusterState
from kube.objects.objects import Phase, PodInfo
from kube.objects.pod_accounting import FINISHED

_REMEMBERED: Final = 65_536
"""Pods that have been counted and may be reported again, since their objects are still there."""


class HasState(Protocol):
    """Such as cluster.tracking.TrackedCluster."""

    @property
    def state(self) -> ClusterState: ...

    @property
    def now(self) -> float: ...


class ObservedRuns(NodesAndPodsOnly):
    """Implements cluster.follower.Follower; attached for no kinds. Every pod counts once.

    is_job : which pods run and end (job_pods.py)
    """

    def __init__(self, cluster: HasState, run_times: RunTimes, is_job: Callable[[PodInfo], bool]) -> None:
        self._cluster, self._run_times, self._is_job = cluster, run_times, is_job
        self._counted: dict[str, None] = {}  # oldest first

    def apply(self, changes: Sequence[Change]) -> None:
        """Learn from pods that have ended, or whose objects are gone, and from Jobs."""
        for change in changes:  # pods that are seated many at once (PodsSeated) have not ended
            if isinstance(change, JobChange):
                self._run_times.learn_from_jobs((change.job,))
            elif isinstance(change, PodChange) and change.pod.phase in FINISHED and self._is_job(change.pod):
                # A virtual kubelet may report that a pod has ended and not when: then it was just now.
                has_just_ended = change.before is not None and change.after is None
                self._count(change.pod, self._cluster.now if has_just_ended else None)
                if change.pod.uid not in self._cluster.state.pods:
                    self._counted.pop(change.pod.uid, None)

    def rebuild(self) -> None:
        """Learn from finished pods and Jobs whose changes were missed."""
        for pod in self._cluster.state.pods.values():
            if pod.phase in FINISHED and self._is_job(pod):
                self._count(pod, None)
        self._run_times.learn_from_jobs(self._cluster.state.jobs.values())

    def _count(self, pod: PodInfo, now: float | None) -> None:
        finished = now if pod.finished is None else pod.finished
        if pod.uid in self._counted or pod.started is None or finished is None:
            return
        if len(self._counted) >= _REMEMBERED:
            del self._counted[next(iter(self._counted))]
        self._counted[pod.uid] = None
        service = self._cluster.state.service_key(pod)
        # A pod being deleted may have ended well, but too early.
        was_cut = pod.phase is Phase.FAILED or pod.terminating
        self._run_times.learn(service, finished - pod.started, was_cut=was_cut)
