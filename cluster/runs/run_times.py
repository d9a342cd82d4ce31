"""How long the pods of a service ran, observed here or learned by the model, and what to expect of the next."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, JobChange, PodChange
from cluster.tables.state import ClusterState
from forecast.job_runs import LONGEST_RUN, RunEstimate, estimate
from forecast.model import PeakModel
from forecast.service_key import ServiceKey
from kube.decoding.jobs import JobInfo, JobOutcome
from kube.objects.counted_pods import FINISHED
from kube.objects.objects import PodInfo, PodPhase

REMEMBERED_RUNS: Final = 64
"""Of each service, the latest."""

SHORTEST_RUN: Final = 1.0
"""Kubernetes writes times in whole seconds: what began and ended in the same one took up to a second."""

_LASTING_SERVICES: Final = 8192
_PASSING_SERVICES: Final = 2048

_PASSING_KINDS: Final = frozenset({"Job", "Pod"})
"""Services of one. They come under ever new names, and are not to push out the CronJobs that run once a day."""

_REMEMBERED: Final = 65_536
"""Pods that have been counted and may be reported again, since their objects are still there."""


@dataclass(slots=True)
class _Seen:
    """bounds: seconds by UID of the Job, oldest first."""

    runs: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED_RUNS))
    bounds: dict[str, float] = field(default_factory=dict)
    estimate: RunEstimate = RunEstimate(0.0, 0.0, 0)  # noqa: RUF009 - frozen


class RunTimes:
    """For any thread; bounded: beyond the limits the service that was not asked or heard of for longest is forgotten.

    lasting, passing : how many services are remembered; passing are those of bare Jobs and pods
    """

    def __init__(self, *, lasting: int = _LASTING_SERVICES, passing: int = _PASSING_SERVICES) -> None:
        self._lasting, self._passing = _Latest(lasting), _Latest(passing)
        self._lock = threading.Lock()

    def expected(self, service: ServiceKey) -> RunEstimate | None:
        """What to expect of its next pod; None = nothing was seen of it."""
        with self._lock:
            seen = self._table(service).get(service)
            return None if seen is None else seen.estimate

    def learn(self, service: ServiceKey, seconds: float, *, was_cut: bool = False) -> None:
        """Learn from a pod of the service that has ended. A length of zero or less is ignored.

        was_cut : it failed or was deleted: its length counts only if it ran longer than pods typically do
        """
        if not _is_time(seconds):
            return
        with self._lock:
            known = self._table(service).get(service)
            if was_cut and (known is None or not known.runs or seconds <= known.estimate.typical):
                return
            seen = self._table(service).make(service)
            seen.runs.append(_bounded(seconds))
            seen.bounds.clear()
            seen.estimate = estimate(seen.runs)

    def learn_from_jobs(self, jobs: Iterable[JobInfo]) -> None:
        """Learn from Jobs in any state; each counts once, however often it is reported.

        Those whose pods all could run side by side and did not fail: none of them took longer than the whole.
        """
        for job in jobs:
            seconds = _seconds_of(job)
            if seconds is None:
                continue
            with self._lock:
                seen = self._table(job.service).make(job.service)
                if seen.runs:
                    continue
                seen.bounds[job.uid] = seconds
                if len(seen.bounds) > REMEMBERED_RUNS:
                    del seen.bounds[next(iter(seen.bounds))]
                seen.estimate = estimate(seen.bounds.values(), is_bound=True)

    def __len__(self) -> int:
        """Services of which something is known."""
        return len(self._lasting.of) + len(self._passing.of)

    def _table(self, service: ServiceKey) -> _Latest:
        return self._passing if service.kind in _PASSING_KINDS else self._lasting


class _Latest:
    """What was asked for last, up to a number."""

    def __init__(self, most: int) -> None:
        self._most = max(1, most)
        self.of: OrderedDict[ServiceKey, _Seen] = OrderedDict()

    def get(self, service: ServiceKey) -> _Seen | None:
        seen = self.of.get(service)
        if seen is not None:
            self.of.move_to_end(service)
        return seen

    def make(self, service: ServiceKey) -> _Seen:
        seen = self.get(service)
        if seen is None:
            while len(self.of) >= self._most:
                self.of.popitem(last=False)
            seen = self.of[service] = _Seen()
        return seen


def _is_time(seconds: float) -> bool:
    return math.isfinite(seconds) and 0 <= seconds <= LONGEST_RUN


def _bounded(seconds: float) -> float:
    return max(SHORTEST_RUN, seconds)


def _seconds_of(job: JobInfo) -> float | None:
    """At most how long each pod of a Job ran; None = it does not say."""
    if job.outcome is not JobOutcome.COMPLETE or job.started is None or job.finished is None or job.failed:
        return None
    if job.completions is None or not 1 <= job.completions <= job.parallelism:
        return None
    seconds = job.finished - job.started
    return _bounded(seconds) if _is_time(seconds) else None


def model_runs(model: PeakModel) -> Mapping[ServiceKey, RunEstimate]:
    """The run lengths of all services of which a model knows them; a model from before they were learned knows none."""
    known = np.flatnonzero((model.run_count > 0) & np.isfinite(model.run_seconds).all(axis=1))
    return {
        model.services[row]: RunEstimate(max(typical, SHORTEST_RUN), max(typical, long, SHORTEST_RUN), round(count))
        for row, (typical, long), count in zip(
            known.tolist(), model.run_seconds[known].tolist(), model.run_count[known].tolist(), strict=True
        )
    }


class HasState(Protocol):
    """What has the columns of a cluster, such as cluster.tracking.TrackedCluster."""

    @property
    def state(self) -> ClusterState: ...

    @property
    def now(self) -> float: ...


class ObservedRuns(NodesAndPodsOnly):
    """Implements cluster.follower.Follower; attached for no kinds. Every pod counts once.

    is_job : which pods run and end (expected.py)
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
        was_cut = pod.phase is PodPhase.FAILED or pod.terminating
        self._run_times.learn(service, finished - pod.started, was_cut=was_cut)
