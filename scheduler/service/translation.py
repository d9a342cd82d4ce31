"""Answers of the scheduling loops -> bodies."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import msgspec

from scheduler.service.answers import QueuedPodState, QueueReport, SchedulingState
from scheduler.service.bodies import (
    QueueBody,
    QueuedPodBody,
    QueueShareBody,
    SchedulingBody,
    SchedulingStatusBody,
)
from scorer.service.bodies import StatusBody


def scheduling_status_body(scorer: StatusBody, state: SchedulingState, not_ready_because: str) -> SchedulingStatusBody:
    """not_ready_because: of the process as a whole, '' = it is ready."""
    of_scorer = msgspec.structs.asdict(scorer) | {
        "ready": not not_ready_because,
        "not_ready_because": not_ready_because or None,
    }
    return SchedulingStatusBody(**of_scorer, scheduling=_scheduling_body(state))


def queue_body(
    pods: Iterable[QueuedPodState], pending: Mapping[str, int], queues: Iterable[QueueReport], limit: int
) -> QueueBody:
    """The first `limit` of the pods, in the order in which the active queue would have them."""
    total = 0

    def counted() -> Iterable[QueuedPodState]:
        nonlocal total
        for pod in pods:
            total += 1
            yield pod

    first = heapq.nsmallest(limit, counted(), key=lambda pod: (-pod.priority, pod.since, pod.namespace, pod.name))
    return QueueBody([_pod_body(pod) for pod in first], total, dict(pending), list(map(queue_share_body, queues)))


def queue_share_body(queue: QueueReport) -> QueueShareBody:
    """What an owner has and waits for."""
    return QueueShareBody(
        queue=queue.queue,
        owner=queue.owner,
        order=queue.order,
        weight=queue.weight,
        share=queue.share,
        running=queue.running,
        waiting=queue.waiting,
    )


def _pod_body(pod: QueuedPodState) -> QueuedPodBody:
    return QueuedPodBody(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        profile=pod.profile,
        part=pod.part,
        queue=pod.queue or None,
        priority=pod.priority,
        since=datetime.fromtimestamp(pod.since, UTC),
        attempts=pod.attempts,
        rejected_by=sorted(pod.rejected_by),
        message=pod.message,
    )


def _scheduling_body(state: SchedulingState) -> SchedulingBody:
    return SchedulingBody(
        alive=state.is_alive,
        dry_run=state.is_dry_run,
        leading=state.is_leader,
        leader=state.leader,
        election_error=state.election_error or None,
        profiles=dict(state.profiles),
        pending=dict(state.pending),
        bindings_in_flight=state.in_flight,
        assumed_pods=state.assumed,
        gangs=dict(state.gangs),
        loop_age_seconds=state.since_cycle,
    )
