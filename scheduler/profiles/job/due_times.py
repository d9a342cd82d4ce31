"""By when a pod has to start.

A pod that runs on and on, such as one of a service, does not end: it has to start by its deadline, unless it says how
long it runs.

Some runs are stopped before they are done: by activeDeadlineSeconds of the Job, whose clock starts when the controller
takes the Job up, whether or not its pods run; or by the next run of a CronJob with concurrencyPolicy Replace ("@every"
is not heeded, which counts from the last run). A pod that may wait has to start long enough before that.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from base.errors import InputError
from cluster.runs.expected import ExpectedRun, ExpectedRuns
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from scheduler.profiles.job.cron.expression import CronExpression
from scheduler.profiles.job.job_annotations import JobTerms
from scheduler.profiles.job.objects.cron_jobs import Concurrency, CronJobs


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
