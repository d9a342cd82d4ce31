"""What jobs will ask for in the next day, minute by minute.

    CronJobs: schedule x pods side by side, lasting as long as they were seen to  --+
    bursts that came at the same time of day before (recurring_starts.py)                   --+--> Demand --> storms
    (storms.py)

Pure: objects and the clock in, arrays out. Only pods of the job profile count; CronJobs that others place are listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from base.errors import InputError
from forecast.service_key import ServiceKey
from profiles.job.cron.cron_jobs import Concurrency, CronJobInfo
from profiles.job.cron.expression import CronExpression

_MINUTE: Final = 60.0
_MOST_UNREADABLE: Final = 100
_MOST_PODS: Final = 10_000
"""Most pods of one run: any client may write any number, and none of this is a promise."""


@dataclass(frozen=True, slots=True)
class ExpectedBurst:
    """Pods that no CronJob explains and that are expected all the same. at: unix seconds; requests: of one pod;
    annotations: ours, of its pods; stays: something else keeps these from virtual nodes."""

    at: float
    name: str
    service: ServiceKey | None
    pods: int
    run_seconds: float
    requests: Mapping[str, float]
    priority: int = 0
    annotations: Mapping[str, str] | None = None
    stays: bool = False


@dataclass(frozen=True, slots=True)
class DemandSource:
    """Where demand comes from.

    name        : for people; service: of its pods, None = several
    times       : (n_runs,) unix seconds, ascending
    pods        : that each run brings
    run_seconds : (n_runs,) that it lasts, retries apart
    requests    : of one pod
    counts      : its pods are of the job profile
    stays       : its pods may not leave for virtual nodes, whatever their annotations say
    """

    name: str
    service: ServiceKey | None
    times: Floats
    pods: int
    run_seconds: Floats
    requests: Mapping[str, float]
    priority: int = 0
    annotations: Mapping[str, str] | None = None
    counts: bool = True
    stays: bool = False


@dataclass(frozen=True, slots=True)
class JobDemand:
    """One entry per minute from `start` on, a whole minute in unix seconds.

    pods, cpu, memory : (n_minutes,) expected side by side: pods, cores and bytes that they request
    arrivals          : (n_minutes,) pods that come in that minute
    arriving_cpu, arriving_memory : (n_minutes,) cores and bytes that these request
    sources           : what it is made of, and what is listed only
    unreadable        : unreadable schedules, one sentence each
    """

    start: float
    pods: Floats
    cpu: Floats
    memory: Floats
    arrivals: Floats
    arriving_cpu: Floats
    arriving_memory: Floats
    sources: tuple[DemandSource, ...] = ()
    unreadable: tuple[str, ...] = ()


def demand_ahead(
    cron_jobs: Iterable[CronJobInfo],
    bursts: Iterable[ExpectedBurst],
    run_seconds: Callable[[ServiceKey], float],
    now: float,
    minutes: int = 1440,
    *,
    scheduler_names: Collection[str] = ("job-scheduler",),
    default_zone: str = "",
    most_pods: int = _MOST_PODS,
    failed: Callable[[CronJobInfo, Exception], object] = lambda job, error: None,
) -> JobDemand:
    """
    run_seconds     : that a pod of a service takes
    scheduler_names : of the job profile
    default_zone    : of CronJobs that name none: that of the kube-controller-manager; '' = UTC
    most_pods       : that one run counts for: what the cluster has no place for does not come at once
    failed          : called with CronJobs that raise an unexpected exception, which are left out like unreadable ones

    A run of more completions than parallelism lasts for as many rounds as it takes; later rounds bring no more at once
    than the first, which is what counts as arriving.
    """
    start = now // _MINUTE * _MINUTE
    until, most = start + _MINUTE * minutes, max(1, min(most_pods, _MOST_PODS))
    sources: list[DemandSource] = []
    unreadable: list[str] = []
    for job in cron_jobs:
        try:
            found = _of_cron_job(job, run_seconds, start, until, most, scheduler_names, default_zone)
        except InputError as error:
            unreadable.append(f"CronJob {job.namespace}/{job.name}: {error}")
            continue
        except Exception as error:
            unreadable.append(f"CronJob {job.namespace}/{job.name}: {type(error).__name__}: {error}")
            failed(job, error)
            continue
        if found is not None:
            sources.append(found)
    sources += [_of_burst(one, most) for one in bursts if start <= one.at < until and one.pods > 0]
    counted = [one for one in sources if one.counts]
    arriving, side_by_side = np.zeros((3, minutes + 1)), np.zeros((3, minutes + 1))  # of pods, cores, bytes
    for one in counted:
        first = _minute_of(one.times, start, minutes)
        last = np.maximum(_minute_of(one.times + one.run_seconds + _MINUTE - 1, start, minutes), first)
        requested = np.array([1.0, one.requests.get("cpu", 0.0), one.requests.get("memory", 0.0)]) * one.pods
        came = np.bincount(first, minlength=minutes + 1)
        arriving += requested[:, None] * came
        side_by_side += requested[:, None] * (came - np.bincount(last, minlength=minutes + 1))
    pods, cpu, memory = np.maximum(np.cumsum(side_by_side, axis=1), 0.0)[:, :minutes]
    came, came_cpu, came_memory = arriving[:, :minutes]
    return JobDemand(
        start, pods, cpu, memory, came, came_cpu, came_memory, tuple(sources), tuple(unreadable[:_MOST_UNREADABLE])
    )


def _of_cron_job(
    job: CronJobInfo,
    run_seconds: Callable[[ServiceKey], float],
    start: float,
    until: float,
    most_pods: int,
    scheduler_names: Collection[str],
    default_zone: str,
) -> DemandSource | None:
    """None = it starts nothing. Raises InputError."""
    if job.suspended or job.pods_at_once == 0:
        return None
    anchor = job.created if job.last_scheduled is None else job.last_scheduled
    expression = CronExpression.parse(job.schedule, job.time_zone or default_zone)
    # (start - 1, until - 1]: with the minute under way, whose jobs may just be coming.
    times = expression.times_between(start - 1, until - 1, anchor=anchor)
    lasts = run_seconds(job.service) * job.rounds()
    if job.active_deadline_seconds is not None:
        lasts = min(lasts, max(1.0, float(job.active_deadline_seconds)))
    if job.concurrency is Concurrency.FORBID:
        under_way_until = -math.inf
        if job.active and job.last_scheduled is not None:
            under_way_until = job.last_scheduled + lasts
        times = _one_at_a_time(times, lasts, under_way_until)
    lasting = np.full(len(times), lasts)
    if job.concurrency is Concurrency.REPLACE and len(times) > 1:
        lasting[:-1] = np.minimum(lasts, np.diff(times))
    return DemandSource(
        name=str(job.service),
        service=job.service,
        times=times,
        pods=min(job.pods_at_once, most_pods),
        run_seconds=lasting,
        requests=job.requests,
        priority=job.priority or 0,
        annotations=job.annotations,
        counts=job.scheduler_name in scheduler_names,
        stays=job.template.stays,
    )


def _one_at_a_time(times: Floats, lasts: float, under_way_until: float) -> Floats:
    """Without those that come while the run before is still under way."""
    if len(times) == 0 or (under_way_until <= times[0] and (len(times) == 1 or np.diff(times).min() >= lasts)):
        return times
    kept: list[float] = []
    free = under_way_until
    at = int(np.searchsorted(times, free))
    while at < len(times):
        kept.append(float(times[at]))
        free = kept[-1] + lasts
        at = max(at + 1, int(np.searchsorted(times, free)))
    return np.array(kept, dtype=np.float64)


def _of_burst(burst: ExpectedBurst, most_pods: int) -> DemandSource:
    return DemandSource(
        name=burst.name,
        service=burst.service,
        times=np.array([burst.at]),
        pods=min(burst.pods, most_pods),
        run_seconds=np.array([burst.run_seconds]),
        requests=burst.requests,
        priority=burst.priority,
        annotations=burst.annotations,
        stays=burst.stays,
    )


def _minute_of(times: Floats, start: float, minutes: int) -> Ints:
    return np.clip((times - start) // _MINUTE, 0, minutes).astype(np.int64)
