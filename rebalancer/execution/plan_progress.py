"""Which moves of a plan may begin, which are left out, and what becomes of the plan. No I/O.

    Planned --the first move begins--> Running --all moves are over--> Completed
                                          +--stopped: what is under way ends, nothing else begins--> Stopped

Moves begin in the order of the plan, a few at a time. A move waits
- while as many as may be are under way,
- while another of its service is under way: it is not known which of two new pods replaces which,
- while a move before it still takes a pod off the node that it goes to: the room may not be free yet.

Moves that get stuck or end elsewhere stop those of their namespace. Only where a second namespace has the same trouble
is it the cluster's, and the whole plan stops: pods that never get ready must not take the night from all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from placement.reservations.watched_plans import MoveState
from rebalancer.execution.plan_records import RebalancePlan
from rebalancer.execution.plan_wire import MoveSpec, MoveStatus, PlanPhase, PlanStatus, clipped, moment
from rebalancer.rebalance_settings import ExecutionOptions


@dataclass(frozen=True, slots=True)
class PlanStep:
    """
    status    : to be written, if it differs from that of the plan
    begin     : moves that may begin now
    under_way : moves to be looked at
    """

    status: PlanStatus
    begin: tuple[MoveSpec, ...] = ()
    under_way: tuple[MoveSpec, ...] = ()


def plan_step(
    plan: RebalancePlan,
    now: float,
    options: ExecutionOptions,
    *,
    may_start: bool = True,
    busy: Collection[tuple[str, str]] = (),
    n_under_way_elsewhere: int = 0,
) -> PlanStep:
    """Return what is to be done of a plan.

    now       : unix seconds
    may_start : False = no move begins now; those under way go on
    busy      : services, (namespace, service), of which moves of other plans are under way
    n_under_way_elsewhere : moves of other plans that are under way
    """
    records = {move.uid: plan.status_of(move) for move in plan.spec.moves}
    stop = plan.status.stop or _why_stop(plan, records, options)
    records |= _left_out(plan, records, stop, now, options)
    under_way = tuple(move for move in plan.spec.moves if records[move.uid].state.is_under_way)
    begin: tuple[MoveSpec, ...] = ()
    if may_start:
        free = options.parallel - len(under_way) - n_under_way_elsewhere
        begin = _to_begin(plan, records, free, {*busy, *map(_service, under_way)})
    status = plan_status(plan, plan.status, records, options)
    return PlanStep(status, begin, under_way)


def plan_status(
    plan: RebalancePlan, status: PlanStatus, changed: Mapping[str, MoveStatus], options: ExecutionOptions
) -> PlanStatus:
    """Return a status with these entries, by UID, and with what follows from all entries: phase, message, stop."""
    records = {move.uid: plan.status_of(move) for move in plan.spec.moves}
    records |= {one.uid: one for one in status.moves} | dict(changed)
    stop = status.stop or _why_stop(plan, records, options)
    in_order = (records[move.uid] for move in plan.spec.moves)
    return replace(
        status,
        phase=_phase(records, is_stopped=bool(stop)),
        message=_message(records, stop),
        stop=stop,
        moves=tuple(one for one in in_order if one.state is not MoveState.PLANNED),
    )


def stopped(plan: RebalancePlan, why: str) -> PlanStatus:
    """Return a status with which no further move begins."""
    return replace(plan.status, stop=plan.status.stop or clipped(why))


def _why_stop(plan: RebalancePlan, records: Mapping[str, MoveStatus], options: ExecutionOptions) -> str:
    """Return why nothing more begins; '' = nothing speaks against it."""
    stuck, elsewhere = _in_trouble(plan, records)
    if stuck and (len(stuck) > 1 or stuck.keys() == _namespaces(plan)):
        return next(iter(stuck.values()))
    # One namespace alone never makes the number, unless no other has moves.
    n_elsewhere = sum(elsewhere.values())
    most = n_elsewhere if len(_namespaces(plan)) == 1 else max(1, options.max_elsewhere - 1)
    if sum(min(n, most) for n in elsewhere.values()) >= options.max_elsewhere:
        return f"{n_elsewhere} replacements are on other nodes than planned"
    return ""


def _stopped_namespaces(
    plan: RebalancePlan, records: Mapping[str, MoveStatus], options: ExecutionOptions
) -> Mapping[str, str]:
    """Return why nothing more begins in a namespace, by its name."""
    stuck, elsewhere = _in_trouble(plan, records)
    many = {
        namespace: f"{n} replacements of {namespace} are on other nodes than planned"
        for namespace, n in elsewhere.items()
        if n >= options.max_elsewhere
    }
    return many | stuck


def _in_trouble(plan: RebalancePlan, records: Mapping[str, MoveStatus]) -> tuple[dict[str, str], Counter[str]]:
    """Return the first move of each namespace that is stuck, in words, and how many of each ended elsewhere."""
    stuck, elsewhere = dict[str, str](), Counter[str]()
    for move in plan.spec.moves:
        record = records[move.uid]
        if record.state is MoveState.STUCK:
            stuck.setdefault(
                move.namespace, clipped(f"the move of {move.namespace}/{move.pod} is stuck: {record.message}")
            )
        elsewhere[move.namespace] += record.state is MoveState.ELSEWHERE
    return stuck, elsewhere


def _namespaces(plan: RebalancePlan) -> set[str]:
    return {move.namespace for move in plan.spec.moves}


def _left_out(
    plan: RebalancePlan, records: Mapping[str, MoveStatus], stop: str, now: float, options: ExecutionOptions
) -> Mapping[str, MoveStatus]:
    """Planned moves that will not begin, as they are to be recorded."""
    at, before = moment(now), plan.spec.start_before
    of_namespace = _stopped_namespaces(plan, records, options)
    found: dict[str, MoveStatus] = {}
    for move in plan.spec.moves:
        record = records[move.uid]
        if record.state is not MoveState.PLANNED:
            continue
        why = f"the plan was stopped: {stop}" if stop else of_namespace.get(move.namespace, "")
        if not why and before is not None and at >= before:
            why = f"it did not begin before {before:%Y-%m-%d %H:%M} UTC"
        if not why and move.partner is not None and move.partner < len(plan.spec.moves):
            partner = plan.spec.moves[move.partner]
            state = (found.get(partner.uid) or records[partner.uid]).state
            if state.is_final and state not in (MoveState.DONE, MoveState.ELSEWHERE):
                why = f"it is worth nothing without the move of {partner.namespace}/{partner.pod}, which is {state}"
        if why:
            found[move.uid] = MoveStatus(move.uid, MoveState.SKIPPED, at, ended_at=at, message=clipped(why))
    return found


def _to_begin(
    plan: RebalancePlan, records: Mapping[str, MoveStatus], free: int, busy: set[tuple[str, str]]
) -> tuple[MoveSpec, ...]:
    begin: list[MoveSpec] = []
    leaving: set[str] = set()  # nodes that earlier moves, not over yet, take pods from
    for move in plan.spec.moves:
        record = records[move.uid]
        if record.state.is_final:
            continue
        if record.state is MoveState.PLANNED and len(begin) < free:
            service = _service(move)
            if service not in busy and move.to not in leaving:
                begin.append(move)
                busy.add(service)
        leaving.add(move.source)
    return tuple(begin)


def _service(move: MoveSpec) -> tuple[str, str]:
    return move.namespace, move.service


def _phase(records: Mapping[str, MoveStatus], *, is_stopped: bool) -> PlanPhase:
    states = [record.state for record in records.values()]
    if all(state.is_final for state in states):
        return PlanPhase.STOPPED if is_stopped else PlanPhase.COMPLETED
    return PlanPhase.PLANNED if all(state is MoveState.PLANNED for state in states) else PlanPhase.RUNNING


def _message(records: Mapping[str, MoveStatus], stop: str) -> str:
    counts = {state: sum(record.state is state for record in records.values()) for state in MoveState}
    counted = ", ".join(f"{n} {state}" for state, n in counts.items() if n)
    return clipped(f"{counted or 'no moves'}{f'; {stop}' if stop else ''}")
