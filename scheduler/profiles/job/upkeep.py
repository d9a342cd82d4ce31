"""What goes on around the job profile in threads of its own: plans, providers, punctuality; and what is told of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kubernetes.client import ApiClient
from prometheus_client.registry import Collector

from kube.events.event_recorder import Post
from kube.session.api_session import ApiSession
from scheduler.profiles.job.options import JobOptions
from scheduler.profiles.job.serverless.plugins import ProviderCare
from scheduler.profiles.job.service.answers import JobReports, PlannedJob, ProviderReport
from scheduler.profiles.job.service.bodies import JOB_BODIES
from scheduler.profiles.job.service.routes import jobs_router
from scheduler.profiles.job.tables import JobTables
from scheduler.profiles.job.valley.planner import Planner
from scheduler.profiles.job.valley.planner import Queue as WakingQueue
from scheduler.queue.queued import WaitingPod
from scheduler.queue_tables import QueueTables
from scheduler.reporting.pod_events import PodEvents
from scorer.every import Every
from scorer.scorer import Scorer

_LOOK_SECONDS: Final = 1.0


class JobQueueView(WakingQueue, Protocol):
    """scheduler.queue.scheduling_queue.SchedulingQueue."""

    def waiting(self) -> Sequence[WaitingPod]:
        """All pods in it."""


def valley_planner(
    tables: JobTables,
    scorer: Scorer,
    queue: WakingQueue,
    settings: JobOptions,
    *,
    after: Callable[[], bool] = lambda: True,
) -> Planner:
    """The planner of the starts of jobs that may wait, not started yet. after: whether the cluster was read."""
    return Planner(
        scorer,
        queue,
        tables.gate,
        tables.run_seconds,
        settings.valley,
        is_ours=tables.is_own_node,
        further=tables.storms.expected_use,
        metrics=tables.valley_metrics,
        after=after,
        clock=scorer.clock,
    )


class JobUpkeep:
    """
    jobs       : to be started in this order, and stopped in reverse
    collectors : for /metrics
    routers    : of /v1/jobs/plan
    bodies     : their schemas
    """

    def __init__(
        self,
        tables: JobTables,
        queues: QueueTables,
        scorer: Scorer,
        queue: JobQueueView,
        session: ApiSession,
        settings: JobOptions,
        *,
        api: ApiClient,
        post: Post | None,
        instance: str,
        may_write: Callable[[], bool],
        after: Callable[[], bool],
    ) -> None:
        """
        api       : for the lists and watches of Jobs and CronJobs
        post      : of events; None = none are written
        may_write : whether this replica leads
        after     : whether the cluster was read
        """
        self._tables, self._scorer, self._queue = tables, scorer, queue
        self._events = PodEvents(post, instance=instance)
        self._providers = ProviderCare(
            tables.serverless,
            session,
            [tables.scheduler_name],
            locked=scorer.reading,
            tell=self._events.tell,
            may_write=may_write,
            after=after,
            jobs=tables.jobs,
        )
        self._planner = valley_planner(tables, scorer, queue, settings, after=after)
        self._may_write = may_write
        punctuality = Every("punctuality", _LOOK_SECONDS, self._look_at_the_clock, after=after)
        self.jobs = (tables.source(api), self._events, tables.storms, self._planner, self._providers, punctuality)
        self.collectors: tuple[Collector, ...] = (
            *tables.valley_metrics.collectors,
            *tables.storms.metrics.collectors,
            self._providers.collector,
        )
        reports = JobReports(
            clock=time.time,
            jobs=self._planned,
            demand=tables.storms.demand_points,
            storms=tables.storms.storm_reports,
            providers=self._provider_reports,
            queues=lambda: queues.reports(one.pod for one in queue.waiting()),
            no_forecast_because=self._no_forecast_because,
        )
        self.routers = (jobs_router(reports.plan),)
        self.bodies = JOB_BODIES

    # Inside

    def _look_at_the_clock(self) -> None:
        with self._scorer.reading():
            self._tables.punctuality.check()
            misses = self._tables.punctuality.take_misses()
        if self._may_write():
            for miss in misses:
                self._events.tell(miss.pod, miss.reason, miss.note)

    def _planned(self) -> Sequence[PlannedJob]:
        waiting = {one.uid for one in self._queue.waiting()}  # the plan may be ten seconds old
        return [
            PlannedJob(
                one.pod.namespace,
                one.pod.name,
                one.pod.uid,
                f"{one.pod.owner.kind}/{one.pod.owner.name}",
                one.start,
                one.due,
                one.run_seconds,
                one.why,
            )
            for one in self._planner.planned()
            if one.pod.uid in waiting
        ]

    def _no_forecast_because(self) -> str:
        if self._planner.load is not None:
            return ""
        return "; ".join(self._scorer.status().reasons) or "nothing has been planned yet"

    def _provider_reports(self) -> Sequence[ProviderReport]:
        tables = self._tables.serverless.tables
        now = time.time()
        with self._scorer.reading() as cluster:
            n_rows = len(cluster.state.nodes)
            numbers = Counter(tables.provider_of(n_rows).tolist())
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
                    backs_off_until=health.until if health.is_backing_off else None,
                    state=str(health.health(now).value),
                )
                for number, (use, health) in enumerate(zip(tables.uses, tables.healths, strict=True))
                if numbers[number] or use.pods
            ]
