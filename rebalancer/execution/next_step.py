"""What to do next for one move, decided from its record and what was seen. No I/O.

    planned --surge--> surging --the new pod is ready on the target--+
       |                  |  it cannot be done                       |
       |                  v                                          |
       |             withdrawing --replicas as before--> its outcome |
       v                                                             |
    evicting <-------------------------------------------------------+
       |   |  budgets say no until the deadline --> refused; the window ends --> skipped
       |  the pod terminates or is gone
       v
    evicted --a new pod has a node--> replaced --it is ready--> done, or elsewhere: not on the target
       |   <--the new pod is gone--      |
       +--- not in time -----------------+--> stuck

    planned --the pod, its node or its target is not as planned--> skipped

A step writes the record or sends a request, never both. A request is sent only if the record that permits it was
written before. After a kill at any point the next executor reads the record, sees what became of the pod, and
continues: if the record says `evicting` and the pod of that UID is gone, it was evicted. A replacement has another
UID, so that no pod is evicted twice.

move_steps.py decides for `surging`, for `withdrawing`, and for `evicting` after a surge.
"""

from __future__ import annotations

from typing import Final

from placement.reservations.watched_plans import MoveState
from rebalancer.execution.move_steps import (
    WAIT,
    Act,
    MoveStep,
    closed,
    ended,
    entered,
    evicting_by_surge,
    is_due,
    is_going,
    is_unsure,
    needs_nomination,
    seconds_since,
    surging,
    withdrawing,
)
from rebalancer.execution.observation import Observation, chosen_replacement, known_pods
from rebalancer.execution.plan_wire import MoveSpec, MoveStatus, moment
from rebalancer.rebalance_settings import ExecutionOptions

_NOT_MADE_ANEW: Final = frozenset({"", "DaemonSet", "Node"})
"""Kinds of controllers: none, one that puts the pod back on the same node, and the kubelet's static pods."""

_CONTROLLER_SECONDS: Final = 30.0
"""A controller that wants a pod creates it within this time."""


def next_step(move: MoveSpec, record: MoveStatus, seen: Observation, now: float, options: ExecutionOptions) -> MoveStep:
    """Return the next step of a move that may begin or has begun. now: unix seconds."""
    match record.state:
        case MoveState.PLANNED:
            return _planned(move, record, seen, now)
        case MoveState.SURGING:
            return surging(move, record, seen, now, options)
        case MoveState.EVICTING if record.replicas is not None:
            return evicting_by_surge(move, record, seen, now, options)
        case MoveState.EVICTING:
            return _evicting(record, seen, now, options)
        case MoveState.EVICTED:
            return _evicted(move, record, seen, now, options)
        case MoveState.REPLACED:
            return _replaced(move, record, seen, now, options)
        case MoveState.WITHDRAWING:
            return withdrawing(move, record, seen, now, options)
        case _:
            return WAIT


def _planned(move: MoveSpec, record: MoveStatus, seen: Observation, now: float) -> MoveStep:
    if why := _why_not(move, seen):
        return ended(record, MoveState.SKIPPED, now, why)
    assert seen.pod is not None  # _why_not
    if not seen.pod.owner:
        return WAIT  # it was not read whole
    if (known := known_pods((seen.pod, *seen.siblings))) is None:
        return ended(record, MoveState.SKIPPED, now, "many pods of its owner have just been created")
    facts = {
        "owner": seen.pod.owner,
        "selector": seen.pod.selector,
        "newest": known.newest,
        "known": known.uids,
    }
    if not move.surge:
        return entered(record, MoveState.EVICTING, now, **facts)
    assert seen.deployment is not None  # _why_not
    return entered(record, MoveState.SURGING, now, replicas=seen.deployment.replicas, **facts)


def _why_not(move: MoveSpec, seen: Observation) -> str:
    """Return why the move must not begin; '' = it may."""
    pod = seen.pod
    if pod is None:
        return "the pod is gone"
    if pod.is_terminating or pod.is_finished:
        return "the pod is about to go, or has ended"
    if pod.node != move.source:
        return f"the pod is on {pod.node or 'no node'}, not on {move.source}"
    if pod.owner_kind in _NOT_MADE_ANEW:
        return f"no controller creates it anew elsewhere: its controller is {pod.owner_kind or 'none'}"
    if seen.target:
        return f"{move.to} takes no pod: {seen.target}"
    if move.surge:
        deployment = seen.deployment
        if deployment is None:
            return "a surge needs a Deployment, and the pod is of none"
        if not deployment.allows_surge:
            return (
                f"Deployment {deployment.name} does not allow a surge: set the annotation "
                'forecast-scheduler.io/move-by-surge: "true"'
            )
        if deployment.scaled_by:
            return f"HorizontalPodAutoscaler {deployment.scaled_by} decides the replicas of {deployment.name}"
        if deployment.surged_for:
            return f"Deployment {deployment.name} is scaled up for another move"
    return seen.hindrance


def _evicting(record: MoveStatus, seen: Observation, now: float, options: ExecutionOptions) -> MoveStep:
    if is_going(seen.pod):
        return entered(record, MoveState.EVICTED, now, evicted_at=moment(now), message="")
    if seen.is_closed:
        return WAIT if is_unsure(seen, now) else ended(record, MoveState.SKIPPED, now, closed(seen))
    if seconds_since(record, now) >= options.refusal_deadline:
        if is_unsure(seen, now):
            return WAIT
        why = seen.attempt.why or "the API server did not accept the eviction"
        return ended(record, MoveState.REFUSED, now, why)
    if 0 <= seconds_since(record, now) < options.pin or not is_due(seen, now, options):
        return WAIT
    return MoveStep(act=Act.EVICT)


def _evicted(move: MoveSpec, record: MoveStatus, seen: Observation, now: float, options: ExecutionOptions) -> MoveStep:
    is_late = _is_late(record, now, options)
    pod = chosen_replacement(record, seen.siblings, move.to)
    if pod is None:
        if seen.wanted is not None and now >= _evicted_at(record) + _CONTROLLER_SECONDS:
            n_pods = sum(not one.is_terminating and not one.is_finished for one in seen.siblings)
            if n_pods >= seen.wanted:
                why = f"no replacement is needed: its controller wants {seen.wanted} pods, and there are {n_pods}"
                return ended(record, MoveState.DONE, now, why)
        if is_late:
            return ended(record, MoveState.STUCK, now, f"no replacement was created for {options.ready_deadline:g} s")
        return WAIT
    if pod.node:
        changes = {"replacement": pod.name, "replacement_uid": pod.uid, "node": pod.node, "message": ""}
        return entered(record, MoveState.REPLACED, now, **changes)
    if is_late:
        why = f"its replacement {pod.name} has no node after {options.ready_deadline:g} s"
        return ended(record, MoveState.STUCK, now, f"{why}: {pod.trouble}" if pod.trouble else why)
    if needs_nomination(move, pod, seen, now, options):
        return MoveStep(act=Act.NOMINATE, subject=pod)
    return WAIT


def _replaced(move: MoveSpec, record: MoveStatus, seen: Observation, now: float, options: ExecutionOptions) -> MoveStep:
    pod = next((one for one in seen.siblings if one.uid == record.replacement_uid), None)
    is_late = _is_late(record, now, options)
    if pod is not None and not pod.is_terminating and not pod.is_finished:
        if pod.is_ready and pod.node == move.to:
            return ended(record, MoveState.DONE, now)
        if pod.is_ready:
            return ended(record, MoveState.ELSEWHERE, now, f"its replacement {pod.name} is on {pod.node}")
        if is_late:
            why = f"its replacement {pod.name} on {pod.node} is not ready after {options.ready_deadline:g} s"
            return ended(record, MoveState.STUCK, now, why)
        return WAIT
    if is_late:
        why = f"its replacement {record.replacement} is gone, and none is ready after {options.ready_deadline:g} s"
        return ended(record, MoveState.STUCK, now, why)
    return entered(record, MoveState.EVICTED, now, replacement="", replacement_uid="", node="")


def _is_late(record: MoveStatus, now: float, options: ExecutionOptions) -> bool:
    return now >= _evicted_at(record) + options.ready_deadline


def _evicted_at(record: MoveStatus) -> float:
    return (record.evicted_at or record.since).timestamp()
