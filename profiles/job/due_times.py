"""By when a pod has to start, and from when on the durations that it says count.

A pod that runs on and on, such as one of a service, does not end: it has to start by its deadline, unless it says how
long it runs.

Some runs are stopped before they are done: by activeDeadlineSeconds of the Job, whose clock starts when the controller
takes the Job up, whether or not its pods run; or by the next run of a CronJob with concurrencyPolicy Replace ("@every"
is not heeded, which counts from the last run). A pod that may wait has to start long enough before that.

A pod that is tried again, or taken back from a provider, is another pod with another creation; what its Job was to have
done by some time it is still to have done by then. Pods that a Job makes once others of it have ended were not to start
by then: it had started.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from base.errors import InputError
from cluster.assuming_cluster import AssumingCluster
from cluster.runs.expected import ExpectedRun, ExpectedRuns
from forecast.service_key import ServiceKey
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo
from profiles.job.cron.cron_jobs import Concurrency, CronJobs
from profiles.job.cron.expression import CronExpression
from profiles.job.job_annotations import JobTerms, terms_of

_FIRST_ROUND: Final = 60.0
"""Seconds within which a Job's controller makes the pods that it runs side by side at first."""


class DatedTerms:
    """When the terms of pods count from, for any thread. jobs: by UID."""

    def __init__(self, jobs: Mapping[str, JobInfo]) -> None:
        self._jobs = jobs

    def of(self, pod: PodInfo) -> JobTerms:
        """What a pod says; see terms_of."""
        terms = terms_of(pod, self.since)
        if terms.latest_start == math.inf or not self._has_started_before(pod):
            return terms
        return replace(terms, latest_start=math.inf)

    def since(self, pod: PodInfo) -> float:
        """Unix seconds from which its durations count: its own creation if it is of no Job, or of one not known yet."""
        job = self._job_of(pod)
        return (job.created if job is not None else 0.0) or pod.created

    def is_settled(self, pod: PodInfo) -> bool:
        """Whether `since` stays as it is: False of a pod whose Job is not known."""
        return pod.owner.kind != "Job" or self._job_of(pod) is not None

    def _has_started_before(self, pod: PodInfo) -> bool:
        job = self._job_of(pod)
        if job is None or not (job.succeeded or job.failed):
            return False
        return pod.created > (job.started or job.created) + _FIRST_ROUND

    def _job_of(self, pod: PodInfo) -> JobInfo | None:
        return self._jobs.get(pod.owner_uid) if pod.owner.kind == "Job" else None


class DueTimes:
    """The latest starts of pods, for any thread.

    runs      : expected runs, bounded by the Jobs of the pods
    cron_jobs : where the CronJob of a pod is looked up
    zone      : of CronJobs that name none: that of the kube-controller-manager; '' = UTC
    """

    def __init__(self, runs: ExpectedRuns, cron_jobs: CronJobs, *, zone: str = "") -> None:
        self._runs, self._cron_jobs, self._zone = runs, cron_jobs, zone

    def of(self, pod: PodInfo, service: ServiceKey, terms: JobTerms) -> float:
        """The latest moment at which a pod may start and be on time, in unix seconds; inf = any. See `due_time`."""
        if not terms.is_timed:
            return math.inf
        if terms.run_seconds is None and not self._runs.is_job(pod):
            return max(pod.created, min(terms.latest_start, terms.deadline))
        return due_time(pod, terms, self.run(pod, service))

    def run(self, pod: PodInfo, service: ServiceKey) -> ExpectedRun:
        """The expected run of a pod, stopped by the next run of its CronJob if that replaces it."""
        run = self._runs.of(pod, service)
        return replace(run, stopped=min(run.stopped, self._replaced(pod, service)))

    def _replaced(self, pod: PodInfo, service: ServiceKey) -> float:
        """When the next run of its CronJob ends it, unix seconds; inf = never."""
        if service.kind != "CronJob" or pod.owner.kind != "Job":
            return math.inf
        cron_job = self._cron_jobs.get(service.namespace, service.name)
        if cron_job is None or cron_job.suspended or cron_job.concurrency is not Concurrency.REPLACE:
            return math.inf
        return _next_run(cron_job.schedule, cron_job.time_zone or self._zone, int(pod.created // 60))


@dataclass(frozen=True, slots=True)
class LatestStarts:
    """By when pods have to start. cron_jobs: followed where the job profile runs, else empty."""

    cron_jobs: CronJobs
    dated: DatedTerms
    due_of: Callable[[PodInfo], float]


def latest_starts(cluster: AssumingCluster, zone: str) -> LatestStarts:
    """To be called under the lock of the tables. zone: see DueTimes"""
    state, cron_jobs = cluster.state, CronJobs()
    dated = DatedTerms(state.jobs)
    due_times = DueTimes(cluster.expected_runs, cron_jobs, zone=zone)

    def due_of(pod: PodInfo) -> float:
        return due_times.of(pod, state.service_key(pod), dated.of(pod))

    return LatestStarts(cron_jobs, dated, due_of)


def due_time(pod: PodInfo, terms: JobTerms, run: ExpectedRun) -> float:
    """Return the latest moment at which a pod may start and be on time, in unix seconds; inf = no limit.

        max(its creation, min(latest start, min(deadline, when its Job is stopped) - rounds x long run))

    A Job that is stopped some time, but says neither, is not one that may wait until then. One that was late before it
    was created is due at its creation: no pod gets ahead by asking for the impossible.
    """
    if not terms.is_timed:
        return math.inf
    return max(pod.created, min(terms.latest_start, min(terms.deadline, run.stopped) - run.rounds * run.long))


@lru_cache(maxsize=8192)
def _next_run(schedule: str, time_zone: str, minute: int) -> float:
    """The first run after a minute of the epoch, unix seconds. inf = never, or the schedule cannot be read."""
    try:
        next_run = CronExpression.parse(schedule, time_zone).next_after(60 * minute)
    except (InputError, ValueError, OverflowError, OSError):
        return math.inf
    return math.inf if next_run is None else float(next_run)
