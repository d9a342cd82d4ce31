"""A group at one moment, for its status and for events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kube.objects.objects import PodInfo
from placement.pod_groups.pod_group import PodGroupInfo
from scheduler.gangs.gang_gate import GangVerdict
from scheduler.gangs.members import Members, Standing

_OWNERS_NAMED: Final = 10


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
        scheduled=members.number(Standing.SITS),
        running=members.running,
        succeeded=members.number(Standing.SUCCEEDED),
        failed=members.number(Standing.FAILED),
        waiting=sum(map(members.number, (Standing.WAITS, Standing.GATED, Standing.FOREIGN))),
        total=len(members),
        complete_since=complete_since,
        owners=_owners(members.sitting.values()),
        ours=members.ours,
    )


def _owners(pods: Iterable[PodInfo]) -> tuple[str, ...]:
    names = {f"{pod.namespace}/{pod.owner.name}" for pod in pods if pod.owner_uid}
    return tuple(sorted(names)[:_OWNERS_NAMED])
