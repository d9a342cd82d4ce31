"""Whether jobs met their latest start and their deadline: counted, and reported once per pod.

    latest start   met when the pod is bound before it, missed as soon as it comes and the pod still waits
    deadline       met when the pod has succeeded before it, missed as soon as it comes and the pod has not

A pod that goes before either, unfinished, counts for neither. What was counted is not counted again, whatever changes
of the pod while it is there.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange, one_by_one
from cluster.tables.state import ClusterState
from kube.objects.counted_pods import FINISHED
from kube.objects.objects import PodInfo, PodPhase
from profiles.job.job_annotations import JobTerms, terms_of
from profiles.job.job_metrics import ValleyMetrics

_MOST_PODS: Final = 65_536
_MOST_MISSES: Final = 1_000
_SETTLE_SECONDS, _UNSETTLED_SECONDS = 1.0, 60.0

DEADLINE_MISSED: Final = "DeadlineMissed"
LATEST_START_MISSED: Final = "LatestStartMissed"


@dataclass(frozen=True, slots=True)
class Miss:
    """For an event of the pod. reason: one word; note: for people."""

    pod: PodInfo
    reason: str
    note: str


@dataclass(slots=True)
class _Followed:
    """What is still open of a pod; inf = nothing, or settled."""

    pod: PodInfo
    latest_start: float
    deadline: float


class Punctuality(NodesAndPodsOnly):
    """Implements cluster.follower.Follower; attach it without kinds."""

    def __init__(
        self,
        state: ClusterState,
        is_assumed: Callable[[str], bool],
        is_job: Callable[[PodInfo], bool],
        *,
        terms: Callable[[PodInfo], JobTerms] = terms_of,
        is_settled: Callable[[PodInfo], bool] = lambda pod: True,
        metrics: ValleyMetrics | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        is_assumed : whether the pod of a UID has a node but is not bound yet (AssumingCluster.assumed)
        is_job     : whether a pod is of the profile
        terms      : what a pod says, DatedTerms.of
        is_settled : whether that stays as it is, DatedTerms.is_settled; those of which it does not are asked again
                     for a minute: Jobs may be heard of after their pods
        clock      : unix seconds
        """
        self._state, self._is_assumed, self._is_job = state, is_assumed, is_job
        self._terms, self._is_settled = terms, is_settled
        self._metrics, self._clock = metrics or ValleyMetrics(), clock
        self._open: dict[str, _Followed] = {}
        self._over: dict[str, None] = {}  # UIDs of pods that are there and of which nothing is open any more
        self._due: list[tuple[float, str]] = []  # a heap; what has been settled since stays until its time
        self._unsettled: dict[str, tuple[float, bool]] = {}  # UIDs; when they were first seen, and whether bound
        self._settled_at = -math.inf
        self._misses: list[Miss] = []
        self.rebuild()

    # Follower

    def apply(self, changes: Sequence[Change]) -> None:
        for change in one_by_one(changes):
            if isinstance(change, PodChange):
                self._changed(change.pod)

    def rebuild(self) -> None:
        now = self._clock()
        for uid in [uid for uid in self._open if uid not in self._state.pods]:
            del self._open[uid]
        self._over = {uid: None for uid in self._over if uid in self._state.pods}
        for pod in self._state.pods.values():
            if pod.uid in self._open or pod.uid in self._over:
                continue
            terms = self._terms(pod)
            if terms.is_timed and pod.phase not in FINISHED and self._is_job(pod):
                self._follow(pod, _to_run(terms, now) if pod.node else terms)

    # The clock's side

    def check(self) -> None:
        """What has come due since the last time: every second or so, under the lock of the tables."""
        now = self._clock()
        if not 0 <= now - self._settled_at < _SETTLE_SECONDS:
            self._settle(now)
        while self._due and self._due[0][0] <= now:
            _, uid = heapq.heappop(self._due)
            followed = self._open.get(uid)
            if followed is None:
                continue
            if followed.latest_start <= now:
                self._metrics.latest_start_missed.inc()
                self._miss(followed.pod, LATEST_START_MISSED, "it was to start", followed.latest_start)
                followed.latest_start = math.inf
            if followed.deadline <= now:
                self._metrics.deadline_missed.inc()
                self._miss(followed.pod, DEADLINE_MISSED, "it was to have ended", followed.deadline)
                followed.deadline = math.inf
            self._drop_settled(uid, followed)

    def take_misses(self) -> list[Miss]:
        """Those since the last time, at most a thousand."""
        taken, self._misses = self._misses, []
        return taken

    # Inside

    def _changed(self, pod: PodInfo) -> None:
        if pod.uid in self._over:
            if pod.uid not in self._state.pods:
                del self._over[pod.uid]
            return
        followed = self._open.get(pod.uid)
        if followed is None:
            if not pod.annotations or pod.phase in FINISHED:
                return
            terms = self._terms(pod)
            if not terms.is_timed or not self._is_job(pod) or pod.uid not in self._state.pods:
                return
            # One that is bound when it is first seen is older than this process, which does not know when it was.
            followed = self._follow(pod, _to_run(terms, self._clock()) if pod.node else terms)
        followed.pod = pod
        now = self._clock()
        if pod.node and not self._is_assumed(pod.uid) and followed.latest_start < math.inf:
            if now <= followed.latest_start:
                self._metrics.latest_start_met.inc()
                followed.latest_start = math.inf
            self.check()
        if pod.phase is PodPhase.SUCCEEDED and followed.deadline < math.inf:
            if (pod.finished or now) <= followed.deadline:
                self._metrics.deadline_met.inc()
                followed.deadline = math.inf
            self.check()
        if pod.uid not in self._state.pods or pod.phase in FINISHED:
            self._open.pop(pod.uid, None)
        else:
            self._drop_settled(pod.uid, followed)

    def _settle(self, now: float) -> None:
        self._settled_at = now
        for uid, (seen, was_bound) in list(self._unsettled.items()):
            followed = self._open.get(uid)
            is_settled = followed is not None and self._is_settled(followed.pod)
            if followed is not None and is_settled:
                terms = self._terms(followed.pod)
                # Of one that was bound when it was first seen what was over by then does not count, as ever.
                if followed.latest_start < math.inf:
                    followed.latest_start = terms.latest_start
                if followed.deadline < math.inf:
                    followed.deadline = (_to_run(terms, seen) if was_bound else terms).deadline
                self._push(followed)
                self._drop_settled(uid, followed)
            if followed is None or is_settled or not 0 <= now - seen < _UNSETTLED_SECONDS:
                del self._unsettled[uid]

    def _follow(self, pod: PodInfo, terms: JobTerms) -> _Followed:
        if len(self._open) >= _MOST_PODS:
            del self._open[next(iter(self._open))]
        followed = self._open[pod.uid] = _Followed(pod, terms.latest_start, terms.deadline)
        self._push(followed)
        if not self._is_settled(pod):
            self._unsettled[pod.uid] = self._clock(), bool(pod.node)
        if len(self._due) > 4 * len(self._open) + 64:
            self._due = [one for one in self._due if one[1] in self._open]
            heapq.heapify(self._due)
        return followed

    def _push(self, followed: _Followed) -> None:
        for moment in (followed.latest_start, followed.deadline):
            if moment < math.inf:
                heapq.heappush(self._due, (moment, followed.pod.uid))

    def _drop_settled(self, uid: str, followed: _Followed) -> None:
        if followed.latest_start == math.inf and followed.deadline == math.inf:
            self._open.pop(uid, None)
            if uid in self._state.pods:
                if len(self._over) >= _MOST_PODS:
                    del self._over[next(iter(self._over))]
                self._over[uid] = None

    def _miss(self, pod: PodInfo, reason: str, was_to: str, moment: float) -> None:
        if len(self._misses) < _MOST_MISSES:
            self._misses.append(Miss(pod, reason, f"{was_to} by {_time(moment)}"))


def _to_run(terms: JobTerms, now: float) -> JobTerms:
    """What is open of a pod that is bound; what was over before is not counted again."""
    return JobTerms(deadline=terms.deadline if terms.deadline > now else math.inf)


def _time(moment: float) -> str:
    try:
        return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return "a time long ago"
