"""What the directory knows of one group."""

from __future__ import annotations

from collections.abc import Sequence

from kube.objects.objects import PodInfo
from placement.pod_groups.minima import are_met
from placement.pod_groups.pod_group import Disruption, PodGroupInfo
from placement.status import Status
from scheduler.gangs.gang_attempts import UNTRIED, Attempts
from scheduler.gangs.gang_gate import Reason, timeout_of
from scheduler.gangs.members import Members
from scheduler.gangs.options import GangOptions


class KnownGang:
    """Guarded by the directory's lock.

    info           : None = pods name it, and there is no such PodGroup
    complete_since : unix seconds, None = never was
    reason         : what is so, as of `_look`; closed: what the gate says by that, None = not put into words yet
    why_missing    : why the group that its pods ask for by annotation is not created
    told_kind      : why the gate was closed when listeners were last notified, None = it was not; told_words: what it
                     said
    """

    __slots__ = (
        "attempts", "closed", "complete_since", "info", "members", "reason", "told_kind", "told_words", "why_missing",
    )  # fmt: skip

    def __init__(self) -> None:
        self.info: PodGroupInfo | None = None
        self.members = Members()
        self.attempts: Attempts = UNTRIED
        self.complete_since: float | None = None
        self.reason = Reason.MISSING
        self.closed: Status | None = None
        self.told_kind: Reason | None = None
        self.told_words = self.why_missing = ""

    def has_become_late(self, now: float, options: GangOptions) -> bool:
        """Whether the timeout has passed since the last attempt; the gang pauses from then on."""
        if self.info is None or self.attempts.first_failed is None or self.attempts.is_late:
            return False
        self.attempts = self.attempts.after(now, timeout=timeout_of(self.info, options))
        return self.attempts.is_late

    def breaks_without(self, roles: Sequence[str]) -> bool:
        """Whether all other members have to go with those of these roles, which sit."""
        info = self.info
        if info is None or info.problem or not roles or info.disruption is Disruption.SINGLE:
            return False
        if info.disruption is Disruption.ALL:
            return True
        return not are_met(info.minima, self.members.without(roles, info.minima))

    def newest_with(self, annotation: str) -> PodInfo | None:
        """The member that waits and came last of those with the annotation."""
        waiting = reversed(self.members.waiting.values())
        return next((pod for pod in waiting if annotation in pod.annotations), None)
