"""Which pods are in which groups, counted as they change, and what is known of each group. Guarded by the lock of the
directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo, PodPhase
from placement.pod_groups.group_of_pod import MIN_MEMBER, group_of, role_of
from placement.pod_groups.minima import are_met
from placement.pod_groups.pod_group import Disruption, PodGroupInfo
from placement.status import Status
from scheduler.gangs.gang_gate import UNTRIED, Attempts, Reason, timeout_of
from scheduler.gangs.members import Member, Members, MemberStanding, standing_of
from scheduler.loop_settings import GangOptions

_COUNTED: Final = frozenset({MemberStanding.SITS, MemberStanding.WAITS})


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


class Roster:
    """
    gangs     : by key, groups that exist or that pods name
    member_of : by UID of the pod, its group, and as what it is counted
    """

    def __init__(
        self, state: ClusterState, is_ours: Callable[[PodInfo], bool], is_assumed: Callable[[str], bool]
    ) -> None:
        """Arguments as of GangDirectory. Counts none before `count`."""
        self.gangs: dict[str, KnownGang] = {}
        self.member_of: dict[str, tuple[str, Member]] = {}
        self._annotated: set[str] = set()  # groups of pods that state a minimum by annotation
        self._state, self._is_ours, self._is_assumed = state, is_ours, is_assumed

    def count(self, uids: Iterable[str], *, is_rebuild: bool = False) -> list[str]:
        """Count pods as they are now, or no longer; returns the groups of which there may be something else to say.

        Members that changed alike are added up first. If a member comes, another part of its group may fit: attempts
        at the group begin anew. is_rebuild: none has come, all are only counted again.
        """
        pods, changes, touched = self._state.pods, dict[tuple[str, Member], int](), dict[str, None]()
        for uid in uids:
            pod, before = pods.get(uid), self.member_of.get(uid)
            now = None if pod is None else self._look(pod)
            if before is not None and (now is None or now[0] != before[0]):
                touched[before[0]] = None
                self.gangs[before[0]].members.drop(uid)
                del self.member_of[uid]
                changes[before] = changes.get(before, 0) - 1
                before = None
            if pod is None or now is None:
                continue
            group, member = now
            gang = self.gangs.get(group)
            if gang is None:
                gang = self.gangs[group] = KnownGang()
            gang.members.put(pod, member.standing)
            if member.is_ours and MIN_MEMBER in pod.annotations:
                self._annotated.add(group)
            if now == before:
                continue
            was = None if before is None else before[1]
            if was is None or gang.attempts is not UNTRIED or not was.is_confirmed_by(member):
                touched[group] = None
            if (
                member.standing is MemberStanding.WAITS
                and not is_rebuild
                and (was is None or was.standing not in _COUNTED)
            ):
                gang.attempts = UNTRIED
            if before is not None:
                changes[before] = changes.get(before, 0) - 1
            changes[now] = changes.get(now, 0) + 1
            self.member_of[uid] = now
        for (group, member), number in changes.items():
            if number:
                self.gangs[group].members.count(member, number)
        return list(touched)

    def _look(self, pod: PodInfo) -> tuple[str, Member] | None:
        """Group of a pod that is there, and as what it counts; None = it is in no group."""
        group = group_of(pod)
        if group is None:
            return None
        uid, is_ours = pod.uid, self._is_ours(pod)
        standing = standing_of(pod, sits=uid in self._state.seat_of, is_ours=is_ours)
        is_running = pod.phase is PodPhase.RUNNING
        return group, Member(role_of(pod), standing, self._is_assumed(uid), is_ours, pod.owner_uid, is_running)

    def forget_pods(self) -> None:
        """Drop all pods, before they are listed again; groups stay."""
        for gang in self.gangs.values():
            gang.members = Members()
        self.member_of.clear()

    def forget_group(self, key: str) -> None:
        """There is neither the group nor a pod of it."""
        del self.gangs[key]
        self._annotated.discard(key)

    def roles(self, uids: Sequence[str]) -> list[str]:
        """Role of each of these members, in the order of the UIDs."""
        return [self.member_of[uid][1].role for uid in uids]

    def stated(self) -> list[tuple[PodInfo, PodGroupInfo | None]]:
        """Of each group whose pods state its minimum by annotation: the pod that came last of those that wait, and the
        group as it is."""
        gangs = [self.gangs[key] for key in self._annotated]
        found = [(gang.newest_with(MIN_MEMBER), gang.info) for gang in gangs]
        return [(pod, info) for pod, info in found if pod is not None]
