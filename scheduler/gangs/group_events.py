"""Reports in Events what has become of a PodGroup: once per turn of events.

Needs `create` on events.events.k8s.io (docs/use/gangs.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kube.events.event_recorder import EventRecorder
from placement.pod_groups.pod_group import PodGroupInfo
from scheduler.gangs.gang_gate import Reason
from scheduler.gangs.group_status import WantedGroupStatus

_PATIENCE: Final = 30.0
"""Seconds for which members may be missing before an event: most groups are created one pod after the other."""


def event_reason(reason: Reason) -> str:
    """Return the reason of the event; '' = there is nothing to report."""
    if reason is Reason.TIMEOUT:
        return "ScheduleTimeout"
    told = (Reason.SCHEDULED, Reason.UNSCHEDULABLE, Reason.INVALID_SPEC, Reason.NOT_ENOUGH_MEMBERS)
    return reason.value if reason in told else ""


@dataclass(frozen=True, slots=True)
class _Turn:
    """told: reason of the last event, '' = none; reason, since: the state now, and since when."""

    uid: str
    told: str
    reason: Reason
    since: float


class Turns:
    """Which event is due for which group. Decides only; by key of the group."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}

    def due(self, group: PodGroupInfo, wanted: WantedGroupStatus, now: float) -> tuple[str, bool]:
        """Reason of the event to post, '' = none; and whether to ask again soon although nothing happens."""
        turn = self._turns.get(group.key)
        if turn is None or turn.uid != group.uid:
            turn = _Turn(group.uid, _told_before(group), wanted.reason, now)
        elif turn.reason is not wanted.reason or now < turn.since:
            turn = _Turn(turn.uid, turn.told, wanted.reason, now)
        reason = event_reason(wanted.reason)
        is_early = wanted.reason is Reason.NOT_ENOUGH_MEMBERS and (wanted.is_empty or now - turn.since < _PATIENCE)
        is_due = bool(reason) and reason != turn.told and not is_early
        self._turns[group.key] = _Turn(turn.uid, reason if is_due else turn.told, turn.reason, turn.since)
        return (reason if is_due else ""), is_early and not wanted.is_empty and reason != turn.told

    def forget(self, key: str) -> None:
        """The group is gone."""
        self._turns.pop(key, None)


def _told_before(group: PodGroupInfo) -> str:
    """Return what the status says was reported, by this process before a restart, or by another replica."""
    for condition in group.status.conditions:
        if condition.type == group.api.condition:
            reason = next((one for one in Reason if one.value == condition.reason), None)
            return "" if reason is None else event_reason(reason)
    return ""


def tell_of_group(events: EventRecorder, group: PodGroupInfo, reason: str, note: str, at: float) -> None:
    """Post an event soon, if they are not too many already. at: unix seconds."""
    regarding = {
        "apiVersion": group.api.version,
        "kind": "PodGroup",
        "namespace": group.namespace,
        "name": group.name,
        "uid": group.uid,
    }
    events.record(regarding, reason, note, at=at, is_warning=reason != event_reason(Reason.SCHEDULED))
