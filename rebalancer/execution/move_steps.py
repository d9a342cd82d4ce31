"""One step of a move: a record to be written, or a request that the record permits; and the steps of a move by surge,
where the only replica of a Deployment goes once another is ready on the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from msgspec.structs import replace

from placement.reservations.watched_plans import MoveState
from rebalancer.execution.observation import DeploymentSeen, Observation, PodSeen, Reply, chosen_replacement
from rebalancer.execution.plan_wire import MoveSpec, MoveStatus, clipped, moment
from rebalancer.rebalance_settings import ExecutionOptions

UNSURE_SECONDS: Final = 30.0
"""An unanswered request may still be carried out for this time."""

_NOT_WITHDRAWN: Final = "the Deployment could not be scaled back yet"


class Act(Enum):
    """A request that changes the cluster, or asks whether it may be changed."""

    EVICT = "evict the pod"
    NOMINATE = "nominate the target for the replacement"
    SURGE = "scale the Deployment up by one"
    ASK_BUDGETS = "ask the disruption budgets"
    SCALE_BACK = "scale the Deployment back, so that the old pod goes"
    WITHDRAW = "scale the Deployment back, so that the new pod goes"


@dataclass(frozen=True, slots=True)
class MoveStep:
    """At most one of `record` and `act` is set; neither = look again later.

    record  : the new status of the move, to be written
    act     : a request that the record permits as it is
    subject : pod that the request is about, where that is not the pod of the move
    """

    record: MoveStatus | None = None
    act: Act | None = None
    subject: PodSeen | None = None


WAIT: Final = MoveStep()


def entered(record: MoveStatus, state: MoveState, now: float, **changes: Any) -> MoveStep:
    """Return the step that writes that the move is in another state from now on. now: unix seconds."""
    return MoveStep(record=replace(record, state=state, since=moment(now), **changes))


def ended(record: MoveStatus, state: MoveState, now: float, message: str = "") -> MoveStep:
    """Return the step that writes that the move is over, without the marks by which replacements were recognised."""
    at = moment(now)
    return MoveStep(
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


def surging(move: MoveSpec, record: MoveStatus, seen: Observation, now: float, options: ExecutionOptions) -> MoveStep:
    """Return the next step of a move whose Deployment is to be scaled up, or is."""
    deployment = seen.deployment
    if deployment is None:
        return ended(record, MoveState.SKIPPED, now, "the Deployment is gone")
    if deployment.surged_for != move.uid:
        return _not_scaled_up(record, deployment, seen, now, options)
    if is_going(seen.pod):
        return _withdraw(record, MoveState.SKIPPED, now, "the pod went before its replacement was ready")
    if not deployment.has_ours(record.replicas or 0):
        return _withdraw(record, MoveState.SKIPPED, now, _changed(deployment, record))
    if seen.is_closed:
        return _withdraw(record, MoveState.SKIPPED, now, closed(seen))
    pod = chosen_replacement(record, seen.siblings, move.to)
    if pod is not None and pod.node and pod.node != move.to:
        return _withdraw(record, MoveState.ELSEWHERE, now, f"its replacement {pod.name} is on {pod.node}")
    if pod is not None and pod.is_ready:
        return entered(
            record, MoveState.EVICTING, now, replacement=pod.name, replacement_uid=pod.uid, node=pod.node, message=""
        )
    if seconds_since(record, now) >= options.ready_deadline:
        why = f"no replacement on {move.to} was ready for {options.ready_deadline:g} s"
        trouble = "" if pod is None else pod.trouble
        return _withdraw(record, MoveState.STUCK, now, f"{why}: {trouble}" if trouble else why)
    if pod is not None and needs_nomination(move, pod, seen, now, options):
        return MoveStep(act=Act.NOMINATE, subject=pod)
    return WAIT


def evicting_by_surge(
    move: MoveSpec, record: MoveStatus, seen: Observation, now: float, options: ExecutionOptions
) -> MoveStep:
    """Return the next step of a move whose replacement is ready."""
    deployment, new = seen.deployment, _recorded(record, seen)
    is_marked = deployment is not None and deployment.surged_for == move.uid
    if is_going(seen.pod):
        if is_marked and deployment is not None and not deployment.has_ours(record.replicas or 0):
            return _withdraw(record, MoveState.SKIPPED, now, _changed(deployment, record))
        if is_marked:
            return MoveStep(act=Act.SCALE_BACK) if is_due(seen, now, options) else WAIT
        return entered(record, MoveState.EVICTED, now, evicted_at=moment(now), message="")
    if deployment is None or not is_marked:
        return _scaled_back(record, new, now, options)
    if not deployment.has_ours(record.replicas or 0):
        return _withdraw(record, MoveState.SKIPPED, now, _changed(deployment, record))
    if seen.is_closed:
        return _withdraw(record, MoveState.SKIPPED, now, closed(seen))
    if new is None:
        return _withdraw(record, MoveState.SKIPPED, now, f"its replacement {record.replacement} is gone")
    is_late = seconds_since(record, now) >= options.refusal_deadline
    if is_late and not is_unsure(seen, now):
        why = seen.attempt.why or "the old pod could not be removed in time"
        return _withdraw(record, MoveState.REFUSED, now, why)
    if is_late or not new.is_ready:
        return WAIT
    if seen.attempt.reply is Reply.ACCEPTED and 0 <= now - seen.attempt.at < options.retry:
        return MoveStep(act=Act.SCALE_BACK)
    return MoveStep(act=Act.ASK_BUDGETS) if is_due(seen, now, options) else WAIT


def withdrawing(
    move: MoveSpec, record: MoveStatus, seen: Observation, now: float, options: ExecutionOptions
) -> MoveStep:
    """Return the next step of a move that failed after its Deployment was scaled up."""
    deployment = seen.deployment
    if deployment is None or deployment.surged_for != move.uid:
        return ended(record, record.outcome or MoveState.SKIPPED, now, record.message)
    if deployment.is_taken_over(record.replicas or 0) and seen.attempt.reply is Reply.ACCEPTED:
        return ended(record, record.outcome or MoveState.SKIPPED, now, record.message)
    if seconds_since(record, now) >= options.refusal_deadline and not is_unsure(seen, now):
        # The executor goes on with it without a record: whoever keeps it from writing holds up nobody else's moves.
        return ended(record, record.outcome or MoveState.SKIPPED, now, f"{_NOT_WITHDRAWN}: {record.message}")
    if not is_due(seen, now, options):
        return WAIT
    return MoveStep(act=Act.WITHDRAW, subject=chosen_replacement(record, seen.siblings, move.to))


def _not_scaled_up(
    record: MoveStatus, deployment: DeploymentSeen, seen: Observation, now: float, options: ExecutionOptions
) -> MoveStep:
    if is_unsure(seen, now):
        return WAIT
    if is_going(seen.pod):
        return ended(record, MoveState.SKIPPED, now, "the pod went before its Deployment was scaled up")
    if seen.is_closed:
        return ended(record, MoveState.SKIPPED, now, closed(seen))
    if deployment.surged_for or deployment.scaled_by or not deployment.allows_surge:
        why = f"Deployment {deployment.name} does not allow a surge any more"
        return ended(record, MoveState.SKIPPED, now, why)
    if deployment.replicas != record.replicas:
        return ended(record, MoveState.SKIPPED, now, _changed(deployment, record))
    if seconds_since(record, now) >= options.refusal_deadline:
        why = seen.attempt.why or f"Deployment {deployment.name} could not be scaled up"
        return ended(record, MoveState.REFUSED, now, why)
    if 0 <= seconds_since(record, now) < options.pin or not is_due(seen, now, options):
        return WAIT
    return MoveStep(act=Act.SURGE)


def _scaled_back(record: MoveStatus, new: PodSeen | None, now: float, options: ExecutionOptions) -> MoveStep:
    """The ReplicaSet has one pod too many; the old pod is still there."""
    if new is None or new.is_terminating:
        return ended(record, MoveState.REFUSED, now, "the ReplicaSet removed the new pod in place of the old one")
    if seconds_since(record, now) >= options.ready_deadline:
        return ended(record, MoveState.STUCK, now, "the ReplicaSet did not remove the old pod")
    return WAIT


def _withdraw(record: MoveStatus, outcome: MoveState, now: float, message: str) -> MoveStep:
    return entered(record, MoveState.WITHDRAWING, now, outcome=outcome, message=clipped(message))


def _recorded(record: MoveStatus, seen: Observation) -> PodSeen | None:
    return next((one for one in seen.siblings if one.uid == record.replacement_uid), None)


def _surged(record: MoveStatus) -> int:
    return (record.replicas or 0) + 1


def _changed(deployment: DeploymentSeen, record: MoveStatus) -> str:
    if deployment.scaled_by:
        return f"HorizontalPodAutoscaler {deployment.scaled_by} decides the replicas of {deployment.name}"
    if deployment.replicas != _surged(record):
        return f"replicas of Deployment {deployment.name} were changed to {deployment.replicas} by another client"
    if deployment.asked_by:
        return f"{deployment.asked_by} asks for {deployment.replicas} replicas of Deployment {deployment.name}, too"
    return f"the mark of the surge on Deployment {deployment.name} was changed by another client"
