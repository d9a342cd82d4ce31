"""The steps of a move by surge: the only replica of a Deployment goes once another one is ready on the target.

    surging       the Deployment is scaled from N to N + 1, and marked with the pod and with N in the same patch
                  --> the new pod is ready on the target: evicting
    evicting      disruption budgets are asked by a dry run; then N again, without the mark. The old pod has the lower
                  deletion cost, so that its ReplicaSet deletes that one --> it terminates: evicted
    withdrawing   N again, without the mark; the new pod has the lower deletion cost --> the outcome on record

The mark on the Deployment says whether N + 1 is ours: after a kill between the patch and its record the next executor
finds it. If another client changes the replicas or the mark meanwhile, or asks for as many replicas itself, its number
stays: only the mark is removed, as soon as it may be. Once the time of the plan is over no old pod goes any more: the
new one does.

Source for the order in which a ReplicaSet deletes pods: ActivePodsWithRanks in pkg/controller/controller_utils.go.
"""

from __future__ import annotations

from typing import Final

from placement.reserved_targets.move_state import MoveState
from rebalancer.execution.observation import DeploymentSeen, Observation, PodSeen, Reply
from rebalancer.execution.options import ExecutionOptions
from rebalancer.execution.replacement import chosen_replacement
from rebalancer.execution.step import (
    WAIT,
    Act,
    Step,
    closed,
    ended,
    entered,
    is_due,
    is_going,
    is_unsure,
    needs_nomination,
    seconds_since,
)
from rebalancer.execution.wire import MoveSpec, MoveStatus, clipped, moment

_NOT_WITHDRAWN: Final = "the Deployment could not be scaled back yet"


def surging(move: MoveSpec, record: MoveStatus, seen: Observation, now: float, options: ExecutionOptions) -> Step:
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
        return Step(act=Act.NOMINATE, subject=pod)
    return WAIT


def evicting_by_surge(
    move: MoveSpec, record: MoveStatus, seen: Observation, now: float, options: ExecutionOptions
) -> Step:
    """Return the next step of a move whose replacement is ready."""
    deployment, new = seen.deployment, _recorded(record, seen)
    is_marked = deployment is not None and deployment.surged_for == move.uid
    if is_going(seen.pod):
        if is_marked and deployment is not None and not deployment.has_ours(record.replicas or 0):
            return _withdraw(record, MoveState.SKIPPED, now, _changed(deployment, record))
        if is_marked:
            return Step(act=Act.SCALE_BACK) if is_due(seen, now, options) else WAIT
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
        return Step(act=Act.SCALE_BACK)
    return Step(act=Act.ASK_BUDGETS) if is_due(seen, now, options) else WAIT


def withdrawing(move: MoveSpec, record: MoveStatus, seen: Observation, now: float, options: ExecutionOptions) -> Step:
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
    return Step(act=Act.WITHDRAW, subject=chosen_replacement(record, seen.siblings, move.to))


def _not_scaled_up(
    record: MoveStatus, deployment: DeploymentSeen, seen: Observation, now: float, options: ExecutionOptions
) -> Step:
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
    return Step(act=Act.SURGE)


def _scaled_back(record: MoveStatus, new: PodSeen | None, now: float, options: ExecutionOptions) -> Step:
    """The ReplicaSet has one pod too many; the old pod is still there."""
    if new is None or new.is_terminating:
        return ended(record, MoveState.REFUSED, now, "the ReplicaSet removed the new pod in place of the old one")
    if seconds_since(record, now) >= options.ready_deadline:
        return ended(record, MoveState.STUCK, now, "the ReplicaSet did not remove the old pod")
    return WAIT


def _withdraw(record: MoveStatus, outcome: MoveState, now: float, message: str) -> Step:
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
