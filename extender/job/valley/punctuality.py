"""Whether jobs that said by when they have to start and to end did so: counted, and told once per pod.

    latest start   met when the pod is bound before it, missed as soon as it comes and the pod still waits
    deadline       met when the pod has succeeded before it, missed as soon as it comes and the pod has not

A pod that goes before either, unfinished, counts for neither.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from extender.job.terms import JobTerms, terms_of
from extender.job.valley.metrics import ValleyMetrics
from scorer.cluster.changes import Change, PodChange, one_by_one
from scorer.cluster.decoding import ApiObject, Kind
from scorer.cluster.objects import Phase, PodInfo
from scorer.cluster.seating import FINISHED
from scorer.cluster.state import ClusterState

__all__ = ["Miss", "Punctuality"]

_MOST_PODS: Final = 65_536
_MOST_MISSES: Final = 1_000

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


class Punctuality:
    """Implements scorer.follower.Follower; attach it without kinds."""

    def __init__(
        self,
        state: ClusterState,
        is_assumed: Callable[[str], bool],
        is_job: Callable[[PodInfo], bool],
        *,
        metrics: ValleyMetrics | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        is_assumed : whether the pod of a UID has a node but is not bound yet (AssumingCluster.assumed)
        is_job     : whether a pod is of the profile
        clock      : unix seconds
        """
        self._state, self._is_assumed, self._is_job = state, is_assumed, is_job
        self._metrics, self._clock = metrics or ValleyMetrics(), clock
        self._open: dict[str, _Followed] = {}
        self._due: list[tuple[float, str]] = []  # a heap; what has been settled since stays until its time
        self._misses: list[Miss] = []
        self.rebuild()

    # Follower

    def apply(self, changes: Sequence[Change]) -> None:
        """See Follower."""
        for change in one_by_one(changes):
            if isinstance(change, PodChange):
                self._changed(change.pod)

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        """See Follower."""

    def put(self, kind: Kind, item: ApiObject) -> None:
        """See Follower."""

    def delete(self, kind: Kind, item: ApiObject) -> None:
        """See Follower."""

    def rebuild(self) -> None:
        """See Follower."""
        now = self._clock()
        for uid in [uid for uid in self._open if uid not in self._state.pods]:
            del self._open[uid]
        for pod in self._state.pods.values():
            terms = terms_of(pod)
            if terms.is_timed and pod.uid not in self._open and pod.phase not in FINISHED and self._is_job(pod):
                self._follow(pod, _to_run(terms, now) if pod.node else terms)

    # The clock's side

    def check(self) -> None:
        """What has come due since the last time: every second or so, under the lock of the tables."""
        now = self._clock()
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
        followed = self._open.get(pod.uid)
        if followed is None:
            if not pod.annotations or pod.phase in FINISHED:
                return
            terms = terms_of(pod)
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
        if pod.phase is Phase.SUCCEEDED and followed.deadline < math.inf:
            if (pod.finished or now) <= followed.deadline:
                self._metrics.deadline_met.inc()
                followed.deadline = math.inf
            self.check()
        if pod.uid not in self._state.pods or pod.phase in FINISHED:
            self._open.pop(pod.uid, None)
        else:
            self._drop_settled(pod.uid, followed)

    def _follow(self, pod: PodInfo, terms: JobTerms) -> _Followed:
        if len(self._open) >= _MOST_PODS:
            del self._open[next(iter(self._open))]
        followed = self._open[pod.uid] = _Followed(pod, terms.latest_start, terms.deadline)
        for moment in (terms.latest_start, terms.deadline):
            if moment < math.inf:
                heapq.heappush(self._due, (moment, pod.uid))
        if len(self._due) > 4 * len(self._open) + 64:
            self._due = [one for one in self._due if one[1] in self._open]
            heapq.heapify(self._due)
        return followed

    def _drop_settled(self, uid: str, followed: _Followed) -> None:
        if followed.latest_start == math.inf and followed.deadline == math.inf:
            self._open.pop(uid, None)

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
