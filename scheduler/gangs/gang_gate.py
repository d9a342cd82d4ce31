"""Whether the members of a group may be tried, and when again after a failure; and why not, in words for the owner.

    --failed--> trying --timeout is over--> paused --pause is over--> tried once --failed--> paused ...

Placed, changed, or incomplete: as if it had never been tried. While a group is paused, smaller ones behind it are tried
on the room that it waits for; it holds nothing meanwhile, as it never does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from kube.objects.objects import PodInfo
from placement.pod_groups.group_apis import ApiState, api_of
from placement.pod_groups.minima import Minima, shortfall
from placement.pod_groups.pod_group import PodGroupInfo
from scheduler.gangs.members import Members, MemberStanding
from scheduler.loop_settings import GangOptions

# How the attempts to place a complete group went, and when it is its turn again.
#
#     --failed--> trying --timeout is over--> paused --pause is over--> tried once --failed--> paused ...
#
# Placed, changed, or incomplete: as if it had never been tried. While a group is paused, smaller ones behind it are
# tried on the room that it waits for; it holds nothing meanwhile, as it never does.


@dataclass(frozen=True, slots=True)
class Attempts:
    """
    first_failed : unix seconds, None = no attempt failed
    message      : of the last
    paused_at    : unix seconds
    makes_room   : victims go for the group: it does not become late, and does not pause, while it waits for them
    """

    first_failed: float | None = None
    message: str = ""
    is_late: bool = False
    paused_at: float | None = None
    makes_room: bool = False

    def failed(self, now: float, message: str, *, timeout: float, makes_room: bool = False) -> Attempts:
        # A clock that was set back begins anew.
        first = now if self.first_failed is None else min(self.first_failed, now)
        is_late = not makes_room and (self.is_late or now - first >= timeout)
        return Attempts(first, message, is_late, now if is_late else None, makes_room)

    def after(self, now: float, *, timeout: float) -> Attempts:
        """The attempts as they are at `now` if none was added: past the timeout, the group is late and pauses."""
        if self.first_failed is None or self.is_late or self.makes_room:
            return self
        if now < self.first_failed:
            return replace(self, first_failed=now)  # the clock was set back
        if now - self.first_failed < timeout:
            return self
        return replace(self, is_late=True, paused_at=now)

    def is_paused(self, now: float, *, pause: float) -> bool:
        """Whether others go first."""
        return self.paused_at is not None and 0 <= now - self.paused_at < pause


UNTRIED: Final = Attempts()


class Reason(Enum):
    """Of the condition Scheduled of a group; the first two are of groups that have no status."""

    NOT_READ = "NotRead"
    MISSING = "Missing"
    INVALID_SPEC = "InvalidSpec"
    NOT_ENOUGH_MEMBERS = "NotEnoughMembers"
    QUEUED = "Queued"  # complete, and not tried yet
    UNSCHEDULABLE = "Unschedulable"
    TIMEOUT = "Timeout"
    SCHEDULED = "Scheduled"


@dataclass(frozen=True, slots=True)
class GangVerdict:
    """passes: members that wait may be tried; message: what is so, for people."""

    reason: Reason
    passes: bool
    message: str


def verdict_without_group(key: str, state: ApiState, why: str = "") -> GangVerdict:
    """state: of the group's API; why: what keeps it from being created, '' = nothing is known to."""
    if state is ApiState.NOT_READ:
        return GangVerdict(Reason.NOT_READ, False, f"waits until PodGroup {key} has been read")
    if state is ApiState.ABSENT:
        api = api_of(key)
        why = f"the API server does not serve podgroups of {api.group}: {api.where_missing}"
    return GangVerdict(Reason.MISSING, False, f"PodGroup {key} does not exist{f': {why}' if why else ''}")


def misfit(pod: PodInfo, group: PodGroupInfo) -> str:
    """Why the pod cannot be a member although it names the group, '' = it can; kube-scheduler refuses the same."""
    if group.priority is not None and pod.priority != group.priority:
        return (
            f"the pod has priority {pod.priority}, its PodGroup {group.name} {group.priority}: give both the same "
            "priorityClassName"
        )
    if group.may_preempt is not None and pod.may_preempt != group.may_preempt:
        return f"the preemptionPolicy of the pod is not that of its PodGroup {group.name}: give both the same"
    return ""


def reason_of(group: PodGroupInfo, attempts: Attempts, *, is_seated: bool, is_complete: bool) -> Reason:
    """Of a group that exists. is_seated: what it needs has a node; is_complete: or may be placed."""
    if group.problem:
        return Reason.INVALID_SPEC
    if is_seated:
        return Reason.SCHEDULED
    if not is_complete:
        return Reason.NOT_ENOUGH_MEMBERS
    if attempts.first_failed is None:
        return Reason.QUEUED
    return Reason.TIMEOUT if attempts.is_late else Reason.UNSCHEDULABLE


def passes(reason: Reason, attempts: Attempts, options: GangOptions, now: float) -> bool:
    """Whether members that wait may be tried. now: unix seconds."""
    if reason is Reason.TIMEOUT:
        return not attempts.is_paused(now, pause=options.pause)
    return reason in _TRIED


_TRIED = frozenset({Reason.SCHEDULED, Reason.QUEUED, Reason.UNSCHEDULABLE})


def verdict_on(
    reason: Reason, group: PodGroupInfo, members: Members, attempts: Attempts, options: GangOptions, now: float
) -> GangVerdict:
    """With words. reason: of `reason_of`."""
    return GangVerdict(
        reason, passes(reason, attempts, options, now), _message(reason, group, members, attempts, options)
    )


def _message(reason: Reason, group: PodGroupInfo, members: Members, attempts: Attempts, options: GangOptions) -> str:
    name = group.name
    match reason:
        case Reason.INVALID_SPEC:
            return f"PodGroup {name} cannot be used: {group.problem}"
        case Reason.SCHEDULED:
            return _seats(members, group.minima)
        case Reason.NOT_ENOUGH_MEMBERS:
            return _missing(name, members, group.minima)
        case Reason.QUEUED:
            return "all members that are needed exist and wait for their turn"
        case Reason.TIMEOUT:
            return (
                f"PodGroup {name} could not be placed within {timeout_of(group, options):g} s, others go first and it "
                f"is tried every {options.pause:g} s: {attempts.message}{_held(members)}"
            )
        case _:
            return attempts.message + _held(members)


def _held(members: Members) -> str:
    """Of a group below its minima: what it holds all the same, as after a binding that failed."""
    sitting = members.number(MemberStanding.SITS)
    return f"; {_number(sitting, 'keeps its node', 'keep their nodes')}" if sitting else ""


def timeout_of(group: PodGroupInfo, options: GangOptions) -> float:
    """Seconds from the first failed attempt."""
    return options.timeout if group.timeout_seconds is None else group.timeout_seconds


def _seats(members: Members, minima: Minima) -> str:
    sitting = members.number(MemberStanding.SITS)
    succeeded = members.seated(minima).members - sitting
    waiting = (
        members.number(MemberStanding.WAITS)
        + members.number(MemberStanding.GATED)
        + members.number(MemberStanding.FOREIGN)
    )
    parts = [
        _number(sitting, "has a node", "have a node"),
        _number(succeeded, "has succeeded", "have succeeded") if succeeded else "",
        _number(minima.needed, "is needed", "are needed"),
        f"{waiting} more {'waits' if waiting == 1 else 'wait'}" if waiting else "",
    ]
    return ", ".join(filter(None, parts))


def _number(n: int, one: str, many: str) -> str:
    return f"{n} member {one}" if n == 1 else f"{n} members {many}"


_EXTRA = {
    MemberStanding.GATED: "held by scheduling gates",
    MemberStanding.FOREIGN: "of another scheduler",
    MemberStanding.LEAVING: "terminating",
    MemberStanding.SUCCEEDED: "finished",
    MemberStanding.FAILED: "failed",
}
"""Members that are there and do not count, as people may wonder about them."""


def _missing(name: str, members: Members, minima: Minima) -> str:
    """Say what the gang still waits for."""
    present = members.present(minima)
    roles = shortfall(Minima(0, minima.by_role), present)
    if present.members < minima.members:
        found = f"{present.members} of {minima.members} pods of PodGroup {name} exist{', ' if roles else ''}{roles}"
    elif roles:
        found = f"{roles} of PodGroup {name}"
    else:
        return "waits for members"  # they have just come
    idle = ((_idle(members, standing, present.members), what) for standing, what in _EXTRA.items())
    extra = ", ".join(f"{number} {what}" for number, what in idle if number)
    return f"waits for members: {found}{f' (not counted: {extra})' if extra else ''}"


def _idle(members: Members, standing: MemberStanding, present: int) -> int:
    if standing is not MemberStanding.SUCCEEDED:
        return members.number(standing)
    counted = present - members.number(MemberStanding.SITS) - members.number(MemberStanding.WAITS)
    return members.number(standing) - counted
