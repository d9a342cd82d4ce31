"""What crosses HTTP, field by field; the OpenAPI document is made from these classes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from msgspec import Meta, Struct

from scheduler.service.bodies import QueueShareBody


class PlannedJobBody(Struct):
    """A pod that waits for its start."""

    namespace: str
    name: str
    uid: str
    owner: Annotated[str, Meta(description="What it is a run of: kind and name.")]
    start: Annotated[datetime, Meta(description="When it is planned to start.")]
    latest_start: Annotated[datetime | None, Meta(description="It is let go before that in any case; null = never.")]
    run_seconds: Annotated[float, Meta(description="How long it is expected to run.")]
    why: Annotated[str, Meta(description="Why then.")]


class DemandBody(Struct):
    """What is expected to be created in a stretch of time."""

    start: datetime
    seconds: float
    pods: float
    cpu_cores: float
    memory_bytes: float


class StormBody(Struct):
    """Many pods expected at once."""

    start: datetime
    end: datetime
    pods: float
    cpu_cores: float
    memory_bytes: float
    reserved_cpu_cores: Annotated[float, Meta(description="Headroom that is held for it now.")]
    reserved_memory_bytes: float
    state: str
    services: list[str]


class ProviderBody(Struct):
    """A provider of virtual nodes. null = no limit."""

    name: str
    nodes: int
    pods: int
    cpu_cores: Annotated[float, Meta(description="Requested by its pods.")]
    memory_bytes: float
    quota_cpu_cores: float | None
    quota_memory_bytes: float | None
    quota_pods: int | None
    weight: float
    backs_off_until: Annotated[datetime | None, Meta(description="Nothing is sent there before; null = it is healthy.")]
    state: str


class JobPlanBody(Struct):
    """The next hours of the job profile."""

    made: datetime
    no_forecast_because: Annotated[str | None, Meta(description="Why no job is held; null = there is a forecast.")]
    jobs: Annotated[list[PlannedJobBody], Meta(description="By start.")]
    total_jobs: Annotated[int, Meta(description="Jobs that the question means; `jobs` holds the first of them.")]
    demand: list[DemandBody]
    storms: list[StormBody]
    providers: list[ProviderBody]
    queues: list[QueueShareBody]


JOB_BODIES: Final = (DemandBody, JobPlanBody, PlannedJobBody, ProviderBody, StormBody)
"""For the OpenAPI document."""
