"""The threads around the job profile: plans, providers, punctuality; and their events, metrics and routes
(GET /v1/jobs/plan).
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.responses import Response

from base.periodic_task import PeriodicTask
from kube.events.event_recorder import EventRecorder
from profiles.job import jobs_plan_answers
from profiles.job.job_settings import JobOptions
from profiles.job.job_tables import JobTables
from profiles.job.jobs_plan_answers import JobPlan, JobReports, PlannedJob, ProviderReport
from profiles.job.serverless.serverless_parts import ProviderCare
from profiles.job.valley.planning_loop import GatedQueue as WakingQueue
from profiles.job.valley.planning_loop import Planner
from scheduler.handle import Handle
from scheduler.process import Process
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.scheduling_answers import moment
from scorer.scorer import Scorer
from scorer.service.scorer_openapi import answer
from scorer.service.scorer_state import TheService
from serving.json_answers import json_response
from serving.openapi_parts import bodies_of
from serving.threads import Upkeep

MOST_JOBS: Final = 5000
MOST_HOURS: Final = 168.0
Hours = Annotated[float, Query(gt=0, le=MOST_HOURS, description="Hours of the plan to show, from now.")]
Namespace = Annotated[str | None, Query(description="Only jobs of this namespace.")]
Limit = Annotated[int, Query(ge=1, le=MOST_JOBS, description="Most jobs in the answer.")]

_LOOK_SECONDS: Final = 1.0


def jobs_router(plan: Callable[..., JobPlan]) -> APIRouter:
    """plan: JobReports.plan, for any thread."""
    router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

    @router.get("/plan", responses=answer("JobPlan", 422))
    async def jobs_plan(
        service: TheService, hours: Hours = 24.0, namespace: Namespace = None, limit: Limit = 100
    ) -> Response:
        """Jobs that wait with their planned starts and why, expected bursts, providers, queues."""

        def look() -> Response:
            return json_response(plan(hours=hours, namespace=namespace, limit=limit))

        return await service.in_thread(look)

    return router


def valley_planner(
    tables: JobTables,
    scorer: Scorer,
    queue: WakingQueue,
    settings: JobOptions,
    *,
    after: Callable[[], bool] = lambda: True,
) -> Planner:
    """Return the planner of the starts of jobs that may wait, not started yet. after: whether the cluster was read."""
    return Planner(
        scorer.tables,
        queue,
        tables.gate,
        tables.run_seconds,
        settings.valley,
        is_ours=tables.is_own_node,
        further=tables.storms.expected_use,
        metrics=tables.valley_metrics,
        after=after,
        clock=scorer.tables.clock,
    )


def job_upkeep(
    handle: Handle, tables: JobTables, options: JobOptions, process: Process, queue: SchedulingQueue
) -> Upkeep:
    """Return what goes on around the job profile: storms and starts are planned, providers and due times watched."""
    scorer, queues = handle.scorer, handle.queues
    assert queues is not None, "there are queues wherever the job profile runs"
    events = EventRecorder(process.post, what="jobs", instance=process.instance)
    providers = ProviderCare(
        tables.serverless,
        process.session,
        [tables.scheduler_name],
        locked=scorer.tables.reading,
        tell=events.warn,
        may_write=process.leads,
        after=process.is_read,
        jobs=tables.jobs,
    )
    planner = valley_planner(tables, scorer, queue, options, after=process.is_read)

    def look_at_the_clock() -> None:
        with scorer.tables.reading():
            tables.punctuality.check()
            misses = tables.punctuality.take_misses()
        if process.leads():
            for miss in misses:
                events.warn(miss.pod, miss.reason, miss.note)

    def no_forecast_because() -> str:
        if planner.load is not None:
            return ""
        return "; ".join(scorer.status().reasons) or "nothing has been planned yet"

    reports = JobReports(
        clock=time.time,
        jobs=lambda: _planned_jobs(planner, queue),
        demand=tables.storms.demand_points,
        storms=tables.storms.storm_reports,
        providers=lambda: _provider_reports(tables, scorer),
        queues=lambda: queues.reports(one.pod for one in queue.waiting()),
        no_forecast_because=no_forecast_because,
    )
    punctuality = PeriodicTask("punctuality", _LOOK_SECONDS, look_at_the_clock, after=process.is_read)
    return Upkeep(
        (events, tables.storms, planner, providers, punctuality),
        (*tables.valley_metrics.collectors, *tables.storms.metrics.collectors, providers.collector),
        (jobs_router(reports.plan),),
        tuple(bodies_of(jobs_plan_answers)),
    )


def _planned_jobs(planner: Planner, queue: SchedulingQueue) -> Sequence[PlannedJob]:
    """Return planned starts of pods that still wait: the plan may be ten seconds old."""
    waiting = {one.uid for one in queue.waiting()}
    return [
        PlannedJob(
            one.pod.namespace,
            one.pod.name,
            one.pod.uid,
            f"{one.pod.owner.kind}/{one.pod.owner.name}",
            moment(one.start),
            moment(one.due) if one.due < math.inf else None,
            one.run_seconds,
            one.why,
        )
        for one in planner.planned()
        if one.pod.uid in waiting
    ]


def _provider_reports(tables: JobTables, scorer: Scorer) -> Sequence[ProviderReport]:
    providers = tables.serverless.tables
    now = time.time()
    with scorer.tables.reading() as cluster:
        n_rows = len(cluster.state.nodes)
        numbers = Counter(providers.provider_of(n_rows).tolist())
        return [
            ProviderReport(
                name=use.provider.name,
                nodes=numbers[number],
                pods=use.pods,
                cpu_cores=use.cpu / 1000,
                memory_bytes=float(use.memory),
                quota_cpu_cores=use.provider.most_cpu,
                quota_memory_bytes=use.provider.most_memory_bytes,
                quota_pods=use.provider.most_pods,
                weight=use.provider.weight,
                backs_off_until=moment(health.until) if health.is_backing_off else None,
                state=str(health.health(now).value),
            )
            for number, (use, health) in enumerate(zip(providers.uses, providers.healths, strict=True))
            if numbers[number] or use.pods
        ]
