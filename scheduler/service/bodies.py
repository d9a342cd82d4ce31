"""What crosses HTTP beside the scorer's bodies, field by field; the OpenAPI document is made from these classes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from scorer.service.bodies import StatusBody


class SchedulingBody(Struct):
    """The scheduling loops as a whole."""

    alive: Annotated[bool, Meta(description="The loop goes round.")]
    dry_run: Annotated[bool, Meta(description="It decides and writes nothing.")]
    leading: Annotated[bool, Meta(description="This replica schedules; a dry run does not.")]
    leader: Annotated[str | None, Meta(description="Who holds the Lease; empty = nobody, null = there is none.")]
    election_error: str | None
    profiles: Annotated[dict[str, str], Meta(description="Scheduler names by profile.")]
    pending: Annotated[dict[str, int], Meta(description="Pods that wait, by part of the queue.")]
    bindings_in_flight: int
    assumed_pods: Annotated[int, Meta(description="Assumed to be bound, not seen so by the watch yet.")]
    gangs: Annotated[dict[str, int], Meta(description="PodGroups by phase.")]
    loop_age_seconds: Annotated[float | None, Meta(description="Since the loop last went round, idle or not.")]


class SchedulingStatusBody(StatusBody, kw_only=True):
    """The state of the scorer inside, and of the scheduling loops."""

    scheduling: SchedulingBody


class QueuedPodBody(Struct):
    """A pod that waits."""

    namespace: str
    name: str
    uid: str
    profile: Annotated[str, Meta(description="Its schedulerName.")]
    part: Annotated[str, Meta(description="active, backoff, unschedulable, gated, in_flight.")]
    queue: Annotated[str | None, Meta(description="Queue and owner; null: it goes by priority and age.")]
    priority: int
    since: Annotated[datetime, Meta(description="When it was first seen.")]
    attempts: int
    rejected_by: Annotated[list[str], Meta(description="Filters that rejected it last.")]
    message: Annotated[str, Meta(description="Why, as in its condition PodScheduled.")]


class QueueShareBody(Struct):
    """What an owner of a queue has and waits for."""

    queue: str
    owner: str
    order: Annotated[str, Meta(description="How the queue chooses between its owners.")]
    weight: float
    share: Annotated[float, Meta(description="Dominant share of the cluster.")]
    running: int
    waiting: int


class QueueBody(Struct):
    """Pods that wait: by priority, then those that wait longest."""

    pods: list[QueuedPodBody]
    total: Annotated[int, Meta(description="Pods that the question means; `pods` holds the first of them.")]
    pending: Annotated[dict[str, int], Meta(description="All pods that wait, by part of the queue.")]
    queues: Annotated[list[QueueShareBody], Meta(description="Owners of queues; empty: all go by priority and age.")]
