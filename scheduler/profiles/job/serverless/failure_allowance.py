"""How many pods a Job can afford to have taken back: each one counts as a failure of it, unless it says otherwise.

    left = backoffLimit - counted failures - those that are not counted yet - 1

One is left for a failure of its own. What was taken back within the last minute is not counted yet, as far as is known
here: the Job controller counts in its own time, and a Job that was asked too little is asked again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from kube.decoding.job_failing import OnDisruption
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo

_COUNTED_SECONDS: Final = 60.0
"""Seconds after which the Job controller has counted a deleted pod."""

_UNKNOWN: Final = "its Job is not known, nor how many failures that can afford"
_FATAL: Final = "the podFailurePolicy of its Job fails that for a disruption"
_TOO_MANY: Final = (
    "its Job could fail of it, with a backoffLimit of {}; with a podFailurePolicy that ignores DisruptionTarget it "
    "would be taken back"
)


def pods_to_spare(run: JobInfo) -> int | None:
    """How many a Job can lose now and still bear one more failure; None = any number."""
    failing = run.failing
    if failing.on_disruption is OnDisruption.IGNORED:
        return None
    if failing.on_disruption is OnDisruption.FATAL:
        return 0
    lost = run.failed + run.uncounted_failed + (run.terminating if failing.replaces_only_ended else 0)
    return max(0, failing.limit - lost - 1)


class Affording:
    """Which pods Jobs can afford to lose. Asked by one thread; `stays` may be called from any. jobs: by UID."""

    def __init__(self, jobs: Mapping[str, JobInfo]) -> None:
        self._jobs = jobs
        self._taken: dict[str, tuple[str, float]] = {}  # by UID of a pod: UID of its Job, when
        self._not_counted: Counter[str] = Counter()  # of these, by UID of the Job

    def begin(self, now: float) -> None:
        """Before pods are asked about. now: unix seconds."""
        for uid, (_, at) in list(self._taken.items()):
            if not 0 <= now - at < _COUNTED_SECONDS:
                self._taken.pop(uid, None)
        self._not_counted = Counter(job for job, _ in list(self._taken.values()))

    def refusal(self, pod: PodInfo) -> str:
        """Why it is not to be taken back, for people; '' = it may be. Only Jobs count failures."""
        if pod.owner.kind != "Job" or pod.uid in self._taken:
            return ""
        run = self._jobs.get(pod.owner_uid)
        if run is None:
            return _UNKNOWN
        left = pods_to_spare(run)
        if left is None or left > self._not_counted[run.uid]:
            return ""
        return _FATAL if run.failing.on_disruption is OnDisruption.FATAL else _TOO_MANY.format(run.failing.limit)

    def takes(self, pod: PodInfo, now: float) -> None:
        """It is taken back."""
        if pod.owner.kind != "Job":
            return
        if pod.uid not in self._taken:
            self._not_counted[pod.owner_uid] += 1
        self._taken[pod.uid] = pod.owner_uid, now

    def stays(self, uid: str) -> None:
        """It was not, after all."""
        self._taken.pop(uid, None)
