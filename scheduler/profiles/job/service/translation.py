"""Answers of the job profile -> bodies."""

from __future__ import annotations

import heapq
import math
from datetime import UTC, datetime

from scheduler.profiles.job.service.answers import (
    DemandPoint,
    JobPlan,
    PlannedJob,
    ProviderReport,
    StormReport,
)
from scheduler.profiles.job.service.bodies import (
    DemandBody,
    JobPlanBody,
    PlannedJobBody,
    ProviderBody,
    StormBody,
)
from scheduler.service.translation import queue_share_body


def plan_body(plan: JobPlan, *, hours: float, namespace: str | None, limit: int) -> JobPlanBody:
    """What lies within so many hours, and the first `limit` of the jobs."""
    until = plan.made + 3600 * hours
    meant = [job for job in plan.jobs if job.start <= until and namespace in (None, job.namespace)]
    first = heapq.nsmallest(limit, meant, key=lambda job: (job.start, job.due, job.namespace, job.name))
    return JobPlanBody(
        made=_moment(plan.made),
        no_forecast_because=plan.no_forecast_because or None,
        jobs=[_job_body(job) for job in first],
        total_jobs=len(meant),
        demand=[_demand_body(point) for point in plan.demand if point.start <= until],
        storms=[_storm_body(storm) for storm in plan.storms if storm.start <= until],
        providers=[_provider_body(provider) for provider in plan.providers],
        queues=[queue_share_body(queue) for queue in plan.queues],
    )


def _job_body(job: PlannedJob) -> PlannedJobBody:
    return PlannedJobBody(
        namespace=job.namespace,
        name=job.name,
        uid=job.uid,
        owner=job.owner,
        start=_moment(job.start),
        latest_start=_moment(job.due) if job.due < math.inf else None,
        run_seconds=job.run_seconds,
        why=job.why,
    )


def _demand_body(point: DemandPoint) -> DemandBody:
    return DemandBody(_moment(point.start), point.seconds, point.pods, point.cpu_cores, point.memory_bytes)


def _storm_body(storm: StormReport) -> StormBody:
    return StormBody(
        start=_moment(storm.start),
        end=_moment(storm.end),
        pods=storm.pods,
        cpu_cores=storm.cpu_cores,
        memory_bytes=storm.memory_bytes,
        reserved_cpu_cores=storm.reserved_cpu_cores,
        reserved_memory_bytes=storm.reserved_memory_bytes,
        state=storm.state,
        services=list(storm.services),
    )


def _provider_body(provider: ProviderReport) -> ProviderBody:
    return ProviderBody(
        name=provider.name,
        nodes=provider.nodes,
        pods=provider.pods,
        cpu_cores=provider.cpu_cores,
        memory_bytes=provider.memory_bytes,
        quota_cpu_cores=provider.quota_cpu_cores,
        quota_memory_bytes=provider.quota_memory_bytes,
        quota_pods=provider.quota_pods,
        weight=provider.weight,
        backs_off_until=None if provider.backs_off_until is None else _moment(provider.backs_off_until),
        state=provider.state,
    )


_LATEST = datetime(9999, 1, 1, tzinfo=UTC)


def _moment(seconds: float) -> datetime:
    """Anybody may write any latest start: the calendar ends somewhere."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return _LATEST
