"""What the scheduling service answers. A class is both the loops' answer and the JSON body of a route: the OpenAPI
document is made from these classes. The names that JSON has stand in `name=` where ours read better in code."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Protocol

from msgspec import Meta, Struct, field

from scorer.answers import ScorerStatus

LAST_MOMENT: Final = datetime(9999, 1, 1, tzinfo=UTC)


class QueuedPod(Struct, frozen=True, kw_only=True):
    """A pod that waits."""

    namespace: str
    name: str
    uid: str
    profile: Annotated[str, Meta(description="Its schedulerName.")]
    part: Annotated[str, Meta(description="active, backoff, unschedulable, gated, in_flight.")]
    queue: Annotated[str | None, Meta(description="Queue and owner; null: it goes by priority and age.")] = None
    priority: int
    since: Annotated[datetime, Meta(description="When it was first seen.")]
    attempts: int
    rejected_by: Annotated[Sequence[str], Meta(description="Filters that rejected it last.")]
    message: Annotated[str, Meta(description="Why, as in its condition PodScheduled.")]


class QueueShare(Struct, frozen=True):
    """What an owner of a queue has and waits for."""

    queue: str
    owner: str
    order: Annotated[str, Meta(description="How the queue chooses between its owners.")]
    weight: float
    share: Annotated[float, Meta(description="Dominant share of the cluster.")]
    running: int
    waiting: int


class Queue(Struct, frozen=True):
    """Pods that wait: by priority, then those that wait longest."""

    pods: Sequence[QueuedPod]
    total: Annotated[int, Meta(description="Pods that the question means; `pods` holds the first of them.")]
    pending: Annotated[Mapping[str, int], Meta(description="All pods that wait, by part of the queue.")]
    queues: Annotated[Sequence[QueueShare], Meta(description="Owners of queues; empty: all go by priority and age.")]


class SchedulingState(Struct, frozen=True, kw_only=True):
    """The scheduling loops as a whole, at one moment."""

    is_alive: Annotated[bool, Meta(description="The loop goes round, or has no reason to.")] = field(name="alive")
    is_dry_run: Annotated[bool, Meta(description="It decides and writes nothing.")] = field(name="dry_run")
    is_leader: Annotated[bool, Meta(description="This replica schedules; a dry run does not.")] = field(name="leading")
    leader: Annotated[str | None, Meta(description="Identity in the Lease; empty = none, null = there is no Lease.")]
    election_error: Annotated[str | None, Meta(description="Why the Lease cannot be read or written.")] = None
    waits_for: Annotated[str | None, Meta(description="What the loops still have to read before they begin.")] = None
    profiles: Annotated[Mapping[str, str], Meta(description="Scheduler names by profile.")]
    pending: Annotated[Mapping[str, int], Meta(description="Pods that wait, by part of the queue.")]
    in_flight: Annotated[int, Meta(description="Bindings under way.")] = field(name="bindings_in_flight")
    assumed: Annotated[int, Meta(description="Assumed to be bound, not seen so by the watch yet.")] = field(
        name="assumed_pods"
    )
    gangs: Annotated[Mapping[str, int], Meta(description="PodGroups by phase.")]
    gang_wait: Annotated[
        float, Meta(description="Since the first vain attempt at the complete gang that waits longest; 0 = none.")
    ] = field(name="gang_wait_seconds", default=0.0)
    since_cycle: Annotated[
        float | None, Meta(description="Since the loop last went round, idle or not; null = it has not begun.")
    ] = field(name="loop_age_seconds")


class SchedulingStatus(ScorerStatus, frozen=True, kw_only=True):
    """The state of the scorer inside, and of the scheduling loops."""

    scheduling: SchedulingState


class SchedulingApi(Protocol):
    """Any thread may ask."""

    def state(self) -> SchedulingState:
        """Quick: probes ask for it."""

    def waiting(self) -> Sequence[QueuedPod]:
        """All pods that wait, in no order; may take as long as copying them does."""

    def queues(self) -> Sequence[QueueShare]:
        """Owners of queues, with what they have and wait for; may take as long as `waiting`."""

    @property
    def abilities(self) -> Callable[[], Mapping[str, Any]]:
        """Return what says what this replica can do now, for /readyz. Quick."""


def queue_answer(
    pods: Iterable[QueuedPod], pending: Mapping[str, int], queues: Sequence[QueueShare], limit: int
) -> Queue:
    """The first `limit` of the pods, in the order in which the active queue would have them."""
    total = 0

    def counted() -> Iterable[QueuedPod]:
        nonlocal total
        for pod in pods:
            total += 1
            yield pod

    first = heapq.nsmallest(limit, counted(), key=lambda pod: (-pod.priority, pod.since, pod.namespace, pod.name))
    return Queue(first, total, pending, queues)


def moment(seconds: float) -> datetime:
    """Unix seconds in UTC. A pod may name any latest start: what the calendar does not have becomes the year 9999."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return LAST_MOMENT
