"""Pods of a CronJob that runs from 02:00 to 05:00, services with an evening peak, and a model that knows both."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from forecast.model import PeakModel
from forecast.resources import RESOURCES
from forecast.service_key import Owner, ServiceKey
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo, PodPhase
from testing.fitted_models import fitted
from tests.scorer.live_cluster import at, pod_of
from tests.synthetic import synthetic_history

NIGHTLY = ServiceKey("shop", "CronJob", "nightly")
RUN_SECONDS = 3 * 3600.0

JOB_LEVEL = 6.0
"""Cores, and base units of all other resources, that one pod of the CronJob uses while it runs."""

_SERVICES = 6


@lru_cache(maxsize=1)
def nightly_model() -> PeakModel:
    """Deployments service-0 to service-5, which peak at 20:00 with 1 to 6 cores, and the CronJob, after 15 days."""
    learned = fitted(synthetic_history(n_services=_SERVICES + 1, n_days=15))
    row, n = _SERVICES, _SERVICES + 1
    starts = np.zeros_like(learned.run_starts)
    starts[row, :, 4] = 8.0
    runs, count, usage = np.full((n, 2), np.nan), np.zeros(n), np.full((n, len(RESOURCES)), np.nan)
    runs[row], count[row], usage[row] = (RUN_SECONDS, RUN_SECONDS + 600), 15, JOB_LEVEL
    replicas_dated, replicas_day_type = learned.replicas_dated.copy(), learned.replicas_day_type.copy()
    for replicas in (replicas_dated, replicas_day_type):
        replicas[row] = 0.0
        replicas[row, :, 4:10] = 8.0
    return replace(
        learned,
        services=(*learned.services[:row], NIGHTLY),
        replicas_dated=replicas_dated,
        replicas_day_type=replicas_day_type,
        run_seconds=runs.astype(np.float32),
        run_count=count.astype(np.float32),
        run_starts=starts,
        run_usage=usage.astype(np.float32),
        per_pod_cost=np.zeros_like(learned.per_pod_cost),
        correction=np.ones_like(learned.correction),
    )


def job_of_night(day: int = 0, *, deadline: int | None = None) -> JobInfo:
    """The Job of one night. deadline: its activeDeadlineSeconds"""
    uid = f"nightly-{29_000_000 + day}"
    return JobInfo("shop", uid, uid, NIGHTLY, created=at(2, day), active_deadline_seconds=deadline)


def job_pod(name: str, on: str = "", *, day: int = 0, ended: float | None = None) -> PodInfo:
    """A pod of the CronJob that started at 02:00, if it has a node. ended: unix seconds"""
    job = job_of_night(day)
    one = replace(pod_of(None, f"{job.name}-{name}", on), owner=Owner("Job", job.name), owner_uid=job.uid)
    if on:
        one = replace(one, started=at(2, day), created=at(2, day))
    return one if ended is None else replace(one, phase=PodPhase.SUCCEEDED, finished=ended)
