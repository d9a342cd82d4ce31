"""One step of a move: a record to be written, or a request that the record permits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from msgspec.structs import replace

from placement.reserved_targets.move_state import MoveState
from rebalancer.execution.observation import Observation, PodSeen, Reply
from rebalancer.execution.options import ExecutionOptions
from rebalancer.execution.wire import MoveSpec, MoveStatus, clipped, moment

UNSURE_SECONDS: Final = 30.0
"""An unanswered request may still be carried out for this time."""


class Act(Enum):
    """A request that changes the cluster, or asks whether it may be changed."""

    EVICT = "evict the pod"
    NOMINATE = "nominate the target for the replacement"
    SURGE = "scale the Deployment up by one"
    ASK_BUDGETS = "ask the disruption budgets"
    SCALE_BACK = "scale the Deployment back, so that the old pod goes"
    WITHDRAW = "scale the Deployment back, so that the new pod goes"


@dataclass(frozen=True, slots=True)
class Step:
    """At most one of `record` and `act` is set; neither = look again later.

    record  : the new status of the move, to be written
    act     : a request that the record permits as it is
    subject : pod that the request is about, where that is not the pod of the move
    """

    record: MoveStatus | None = None
    act: Act | None = None
    subject: PodSeen | None = None


WAIT: Final = Step()


def entered(record: MoveStatus, state: MoveState, now: float, **changes: Any) -> Step:
    """Return the step that writes that the move is in another state from now on. now: unix seconds."""
    return Step(record=replace(record, state=state, since=moment(now), **changes))


def ended(record: MoveStatus, state: MoveState, now: float, message: str = "") -> Step:
    """Return the step that writes that the move is over, without the marks by which replacements were recognised."""
    at = moment(now)
    return Step(
        record=replace(
            record, state=state, since=at, ended_at=at, message=clipped(message), known=(), newest=None, selector=""
        )
    )


def seconds_since(record: MoveStatus, now: float) -> float:
    """Return the seconds for which the move has been in its state."""
    return now - record.since.timestamp()


def is_unsure(seen: Observation, now: float) -> bool:
    """Return whether a request may be under way of which nothing is known, sent by this or an earlier executor."""
    attempt = seen.attempt
    return now < seen.sure_from or (attempt.reply is Reply.UNKNOWN and now < attempt.at + UNSURE_SECONDS)


def is_due(seen: Observation, now: float, options: ExecutionOptions) -> bool:
    """Return whether the next try may be made."""
    return seen.attempt.reply is Reply.NONE or not 0 <= now - seen.attempt.at < options.retry


def is_going(pod: PodSeen | None) -> bool:
    """Return whether a pod is gone or about to go."""
    return pod is None or pod.is_terminating


def closed(seen: Observation) -> str:
    """Return why a pod is left where it is once the time of its plan is over."""
    why = f": {seen.attempt.why}" if seen.attempt.why else ""
    return f"the time in which it may be moved ended before it went{why}"


def needs_nomination(move: MoveSpec, pod: PodSeen, seen: Observation, now: float, options: ExecutionOptions) -> bool:
    """Return whether no part of ours has pinned the pod to the target: it waits without a node or a nomination.

    A pod that a gate holds is left to the part that opens the gate.
    """
    if pod.node or pod.is_gated or pod.nominated == move.to or seen.target:
        return False
    return not 0 <= now - seen.nominated_at < options.retry
