"""How long a pod is expected to run, and by when it has to start.

    what its annotation says  >  what was learned of its service  >  the default

No longer than activeDeadlineSeconds of its Job: then it is stopped. That clock starts when the controller takes the Job
up, whether or not its pods run: one that may wait has to start long enough before it stops. So has one of a CronJob
whose next run replaces it (concurrencyPolicy Replace; "@every" is not heeded, which counts from the last run).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Final

from extender.job.cron.expression import CronExpression
from extender.job.objects.cron_jobs import Concurrency, CronJobs
from extender.job.objects.job_runs import JobRuns
from extender.job.runs.run_times import LONGEST_RUN, SHORTEST_RUN, RunTimes
from extender.job.terms import JobTerms, said_run
from forecast.errors import InputError
from forecast.service_key import ServiceKey
from scorer.cluster.objects import PodInfo

__all__ = ["DEFAULT_RUN", "ExpectedRun", "ExpectedRuns", "Source", "due_time"]

DEFAULT_RUN: Final = 600.0

_NO_ANNOTATIONS: Final[Mapping[str, str]] = {}


class Source(Enum):
    """Where it is known from."""

    SAID = "annotation"
    LEARNED = "pods before"
    BOUNDED = "Jobs before"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class ExpectedRun:
    """Seconds from its start to its end.

    seconds : typically; for what it adds to the load
    long    : nearly always; for deadlines
    stopped : unix seconds at which its Job is ended, whether or not it is done; inf = never
    rounds  : so many such runs one after the other, this one included, until its Job is complete
    """

    seconds: float
    source: Source
    long: float
    stopped: float = math.inf
    rounds: int = 1

    def within(self, most: float) -> ExpectedRun:
        """The same, cut off."""
        if self.long <= most:
            return self
        return replace(self, seconds=min(self.seconds, most), long=most)


class ExpectedRuns:
    """For any thread.

    jobs      : where the Job of a pod is looked up; None = nowhere
    cron_jobs : where its CronJob is
    default   : seconds, where nothing is known
    zone      : of CronJobs that name none: that of the kube-controller-manager; '' = UTC
    """

    def __init__(
        self,
        run_times: RunTimes,
        *,
        jobs: JobRuns | None = None,
        cron_jobs: CronJobs | None = None,
        default: float = DEFAULT_RUN,
        zone: str = "",
    ) -> None:
        if not SHORTEST_RUN <= default <= LONGEST_RUN:
            raise InputError(
                f"the run time of unknown jobs is {default:g} s: it must be between {SHORTEST_RUN:g} s and "
                f"{LONGEST_RUN / 86_400:g} days, such as 10m"
            )
        self._run_times, self._jobs, self._cron_jobs, self._zone = run_times, jobs, cron_jobs, zone
        self._default = ExpectedRun(default, Source.DEFAULT, default)

    def of(self, pod: PodInfo, service: ServiceKey) -> ExpectedRun:
        """Of a pod."""
        run = self.of_service(service, pod.annotations)
        replaced = self._replaced(pod, service)
        if replaced < math.inf:
            run = replace(run, stopped=replaced)
        if self._jobs is None or pod.owner.kind != "Job":
            return run
        job = self._jobs.get(pod.namespace, pod.owner.name)
        if job is None or job.uid != pod.owner_uid:
            return run
        run = replace(run, rounds=job.rounds(job.succeeded))
        if job.active_deadline_seconds is None:
            return run
        most = float(job.active_deadline_seconds)
        # A Job whose start was not seen yet has just been taken up: nobody makes its pods before.
        began = pod.created if job.started is None else job.started
        return replace(run.within(max(SHORTEST_RUN, most)), stopped=min(run.stopped, began + most))

    def of_service(self, service: ServiceKey, annotations: Mapping[str, str] = _NO_ANNOTATIONS) -> ExpectedRun:
        """Of the next pod of a service. annotations: ours, of its template."""
        said = said_run(annotations) if annotations else None
        if said is not None:
            return ExpectedRun(said, Source.SAID, said)
        learned = self._run_times.expected(service)
        if learned is None:
            return self._default
        return ExpectedRun(learned.typical, Source.BOUNDED if learned.is_bound else Source.LEARNED, learned.long)

    def _replaced(self, pod: PodInfo, service: ServiceKey) -> float:
        """When the next run of its CronJob ends it; inf = never."""
        if self._cron_jobs is None or service.kind != "CronJob" or pod.owner.kind != "Job":
            return math.inf
        cron_job = self._cron_jobs.get(service.namespace, service.name)
        if cron_job is None or cron_job.suspended or cron_job.concurrency is not Concurrency.REPLACE:
            return math.inf
        return _next_run(cron_job.schedule, cron_job.time_zone or self._zone, int(pod.created // 60))


@lru_cache(maxsize=8192)
def _next_run(schedule: str, time_zone: str, minute: int) -> float:
    """After that minute of the epoch. inf = never, or the schedule cannot be read."""
    try:
        next_run = CronExpression.parse(schedule, time_zone).next_after(60 * minute)
    except (InputError, ValueError, OverflowError, OSError):
        return math.inf
    return math.inf if next_run is None else float(next_run)


def due_time(pod: PodInfo, terms: JobTerms, run: ExpectedRun) -> float:
    """The latest moment at which it may start and be on time, in unix seconds; inf = it has all the time in the world.

        max(its creation, min(latest start, min(deadline, when its Job is stopped) - rounds x long run))

    A Job that is stopped some time, but says neither, is not one that may wait until then.
    One that was late before it was created is due at its creation: nobody gets ahead by asking for the impossible.
    """
    if not terms.is_timed:
        return math.inf
    return max(pod.created, min(terms.latest_start, min(terms.deadline, run.stopped) - run.rounds * run.long))
