"""What the status of a PodGroup should say, of ours or a native one, and what to change. No I/O.

Phases have the names of scheduler-plugins (apis/scheduling/v1alpha1/types.go and, before, its KEP 42); a group
goes back as its members do:

    Pending         members are missing, or the group is unusable
    PreScheduling   complete, waits for its turn
    Scheduling      complete, did not fit when it was tried, and is tried again
    Scheduled       what it needs has a node
    Running         what it needs runs or has succeeded
    Finished        what it needs has succeeded
    Failed          members have failed, and without them there are too few
    Unknown         had what it needs, and has lost some

    PodGroupInitiallyScheduled = True   Scheduled       what it needs has a node; never taken back
                               = False  Unschedulable   it was tried, and did not fit
                               = False  SchedulerError  the group is unusable

Nothing is written before the first attempt, and nothing about a group none of whose pods names us as its scheduler.
https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/scheduler/schedule_one_podgroup.go (updatePodGroupCondition)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from kube.decoding.stored_templates import StoredCondition
from kube.objects.objects import PodInfo
from placement.pod_groups.group_apis import NATIVE, OURS
from placement.pod_groups.pod_group import PodGroupInfo, PodGroupStatus
from scheduler.gangs.gang_gate import GangVerdict, Reason
from scheduler.gangs.members import Members, MemberStanding

_OWNERS_NAMED: Final = 10

UNDEFINED_UPSTREAM: Final = ("scheduled", "conditions")
"""Fields of ours that scheduler-plugins' definition does not have: it drops them."""

_LONGEST_MESSAGE: Final = 1024

_SAID: Final = {
    Reason.SCHEDULED: ("True", "Scheduled"),
    Reason.UNSCHEDULABLE: ("False", "Unschedulable"),
    Reason.TIMEOUT: ("False", "Unschedulable"),
    Reason.INVALID_SPEC: ("False", "SchedulerError"),
}


@dataclass(frozen=True, slots=True)
class Report:
    """
    scheduled           : members that have a node, or are assumed to
    running             : of those, the ones whose phase is Running
    waiting             : members without a node, whatever holds them back
    total               : pods of the group, whatever they are up to
    complete_since      : unix seconds when all that are needed were first there, None = never
    owners              : controllers of members that sit, "namespace/name", sorted
    ours                : pods of any standing that name us as their scheduler
    """

    group: PodGroupInfo
    verdict: GangVerdict
    scheduled: int
    running: int
    succeeded: int
    failed: int
    waiting: int
    total: int
    complete_since: float | None
    owners: tuple[str, ...]
    ours: int = 1


def report_on(group: PodGroupInfo, members: Members, verdict: GangVerdict, *, complete_since: float | None) -> Report:
    """As they are now."""
    return Report(
        group=group,
        verdict=verdict,
        scheduled=members.number(MemberStanding.SITS),
        running=members.running,
        succeeded=members.number(MemberStanding.SUCCEEDED),
        failed=members.number(MemberStanding.FAILED),
        waiting=sum(map(members.number, (MemberStanding.WAITS, MemberStanding.GATED, MemberStanding.FOREIGN))),
        total=len(members),
        complete_since=complete_since,
        owners=_owners(members.sitting.values()),
        ours=members.ours,
    )


def _owners(pods: Iterable[PodInfo]) -> tuple[str, ...]:
    names = {f"{pod.namespace}/{pod.owner.name}" for pod in pods if pod.owner_uid}
    return tuple(sorted(names)[:_OWNERS_NAMED])


_FINAL: Final = frozenset({"Finished", "Failed"})


@dataclass(frozen=True, slots=True)
class WantedGroupStatus:
    """status, reason, message, generation: of the condition. start: RFC 3339, '' = not complete yet; is_empty: there is
    no pod of the group."""

    phase: str
    scheduled: int
    running: int
    succeeded: int
    failed: int
    occupied_by: str
    start: str
    status: str
    reason: Reason
    message: str
    generation: int
    is_empty: bool = False


def wanted_status(report: Report) -> WantedGroupStatus:
    """For a group as it is now."""
    verdict, start, phase = report.verdict, report.complete_since, _phase(report)
    reason, message = verdict.reason, verdict.message
    if _is_done(report):
        reason, message = Reason.SCHEDULED, f"{report.succeeded} members have succeeded, {report.scheduled} have a node"
    return WantedGroupStatus(
        phase=phase,
        scheduled=report.scheduled,
        running=report.running,
        succeeded=report.succeeded,
        failed=report.failed,
        occupied_by=",".join(report.owners),
        start="" if start is None else moment(start),
        status=_STATUSES.get(reason, "False"),
        reason=reason,
        message=message[:_LONGEST_MESSAGE],
        generation=report.group.generation,
        is_empty=not report.total,
    )


_STATUSES: Final = {Reason.SCHEDULED: "True", Reason.QUEUED: "Unknown"}


def _is_done(report: Report) -> bool:
    """Return whether what was needed has had its node, and no pod waits for more: pods that end one after the other are
    no shortage.
    """
    enough = report.succeeded > 0 and report.scheduled + report.succeeded >= report.group.minima.needed
    return enough and not report.waiting and report.verdict.reason is Reason.NOT_ENOUGH_MEMBERS


def _phase(report: Report) -> str:
    needed, reason = report.group.minima.needed, report.verdict.reason
    if reason is Reason.INVALID_SPEC:
        return "Pending"
    if reason is Reason.SCHEDULED or _is_done(report):
        if not report.scheduled:
            return "Finished"
        return "Running" if report.running + report.succeeded >= needed else "Scheduled"
    if reason is Reason.NOT_ENOUGH_MEMBERS:
        return "Failed" if report.failed else "Unknown" if report.scheduled else "Pending"
    if report.scheduled:
        return "Unknown"
    return "PreScheduling" if reason is Reason.QUEUED else "Scheduling"


def moment(at: float) -> str:
    """Unix seconds as RFC 3339 in UTC, as the API server writes times."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def change_of(
    wanted: WantedGroupStatus, current: PodGroupStatus, now: float, *, dropped: frozenset[str] = frozenset()
) -> dict[str, Any] | None:
    """What to merge into the status (RFC 7396); None = nothing.

    now     : unix seconds
    dropped : fields that the server is known not to keep
    """
    before = next((one for one in current.conditions if one.type == OURS.condition), None)
    if before is not None and (before.observed_generation or 0) > wanted.generation:
        return None  # another replica knows a later version
    if wanted.is_empty and current.phase in _FINAL:
        return None  # its pods have been cleaned up: what became of them stays
    change: dict[str, Any] = {}
    if current.phase != wanted.phase:
        change["phase"] = wanted.phase
    for name in ("scheduled", "running", "succeeded", "failed"):
        count = getattr(wanted, name)
        if (getattr(current, name) or 0) != count:
            change[name] = count
    if wanted.occupied_by and not current.occupied_by:
        change["occupiedBy"] = wanted.occupied_by
    if wanted.start and current.schedule_start_time is None:
        change["scheduleStartTime"] = wanted.start
    condition = _condition(wanted, before, now)
    if condition != before:
        others = [one for one in current.conditions if one.type != OURS.condition]
        change["conditions"] = msgspec.to_builtins([*others, condition])
    for name in dropped:
        change.pop(name, None)
    return change or None


def _condition(wanted: WantedGroupStatus, before: StoredCondition | None, now: float) -> StoredCondition:
    is_same = before is not None and before.status == wanted.status
    since = before.last_transition_time if is_same and before is not None else ""
    return StoredCondition(
        OURS.condition, wanted.status, wanted.reason.value, wanted.message, since or moment(now), wanted.generation
    )


# What the status of a native PodGroup should say: its one condition, as kube-scheduler 1.37 writes it. No I/O.
#
#     PodGroupInitiallyScheduled = True   Scheduled       what it needs has a node; never taken back
#                                = False  Unschedulable   it was tried, and did not fit
#                                = False  SchedulerError  the group is unusable
#
# Nothing is written before the first attempt, and nothing about a group none of whose pods names us as its scheduler.
# https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/scheduler/schedule_one_podgroup.go (updatePodGroupCondition)


def change_of_native(wanted: WantedGroupStatus, current: PodGroupStatus, now: float) -> dict[str, Any] | None:
    """What to merge into the status (RFC 7396); None = nothing. now: unix seconds."""
    said = _SAID.get(wanted.reason)
    before = next((one for one in current.conditions if one.type == NATIVE.condition), None)
    if said is None or wanted.is_empty or (before is not None and before.status == "True"):
        return None
    status, reason = said
    since = moment(now)
    if before is not None:
        if (before.observed_generation or 0) > wanted.generation:
            return None  # another replica knows a later version
        if before.status == status:
            since = before.last_transition_time
    condition = StoredCondition(NATIVE.condition, status, reason, wanted.message, since, wanted.generation)
    if condition == before:
        return None
    others = [one for one in current.conditions if one.type != NATIVE.condition]
    return {"conditions": msgspec.to_builtins([*others, condition])}
