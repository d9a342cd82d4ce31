"""The plan of the job profile: each class is both the profile's report and JSON of GET /v1/jobs/plan."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Meta, Struct

from scheduler.scheduling_answers import LAST_MOMENT, QueueShare, moment


class PlannedJob(Struct, frozen=True):
    """A pod that waits for its start."""

    namespace: str
    name: str
    uid: str
    owner: Annotated[str, Meta(description="What it is a run of: kind and name.")]
    start: Annotated[datetime, Meta(description="When it is planned to start.")]
    latest_start: Annotated[datetime | None, Meta(description="It is released before that in any case; null = never.")]
    run_seconds: Annotated[float, Meta(description="How long it is expected to run.")]
    why: Annotated[str, Meta(description="Why then.")]


class DemandPoint(Struct, frozen=True):
    """What is expected to be created in a stretch of time."""

    start: datetime
    seconds: float
    pods: float
    cpu_cores: float
    memory_bytes: float


class StormReport(Struct, frozen=True):
    """Many pods expected at once. state: for people."""

    start: datetime
    end: datetime
    pods: float
    cpu_cores: float
    memory_bytes: float
    reserved_cpu_cores: Annotated[float, Meta(description="Headroom that is held for it now.")] = 0.0
    reserved_memory_bytes: float = 0.0
    state: str = ""
    services: Sequence[str] = ()


class ProviderReport(Struct, frozen=True):
    """A provider of virtual nodes. null = no limit."""

    name: str
    nodes: int
    pods: int
    cpu_cores: Annotated[float, Meta(description="Requested by its pods.")]
    memory_bytes: float
    quota_cpu_cores: float | None = None
    quota_memory_bytes: float | None = None
    quota_pods: int | None = None
    weight: float = 1.0
    backs_off_until: Annotated[
        datetime | None, Meta(description="Nothing is sent there before; null = it is healthy.")
    ] = None
    state: str = ""


class JobPlan(Struct, frozen=True):
    """The next hours of the job profile."""

    made: datetime
    no_forecast_because: Annotated[str | None, Meta(description="Why no job is held; null = there is a forecast.")]
    jobs: Annotated[Sequence[PlannedJob], Meta(description="By start.")]
    total_jobs: Annotated[int, Meta(description="Jobs that the question means; `jobs` holds the first of them.")]
    demand: Sequence[DemandPoint]
    storms: Sequence[StormReport]
    providers: Sequence[ProviderReport]
    queues: Sequence[QueueShare]


@dataclass(frozen=True, slots=True)
class JobReports:
    """Where the parts of a plan come from, whole: a burst is some thousand pods. Each for any thread, and milliseconds
    at most.

    clock : unix seconds
    """

    clock: Callable[[], float]
    jobs: Callable[[], Sequence[PlannedJob]] = tuple
    demand: Callable[[], Sequence[DemandPoint]] = tuple
    storms: Callable[[], Sequence[StormReport]] = tuple
    providers: Callable[[], Sequence[ProviderReport]] = tuple
    queues: Callable[[], Sequence[QueueShare]] = tuple
    no_forecast_because: Callable[[], str] = str

    def plan(self, *, hours: float = 24.0, namespace: str | None = None, limit: int = 100) -> JobPlan:
        """Return the plan of the next `hours`, and the first `limit` of the jobs."""
        now = moment(self.clock())
        until = now + timedelta(hours=hours)
        meant = [job for job in self.jobs() if job.start <= until and namespace in (None, job.namespace)]
        first = heapq.nsmallest(
            limit, meant, key=lambda job: (job.start, job.latest_start or LAST_MOMENT, job.namespace, job.name)
        )
        return JobPlan(
            made=now,
            no_forecast_because=self.no_forecast_because() or None,
            jobs=first,
            total_jobs=len(meant),
            demand=[point for point in self.demand() if point.start <= until],
            storms=[storm for storm in self.storms() if storm.start <= until],
            providers=self.providers(),
            queues=self.queues(),
        )
