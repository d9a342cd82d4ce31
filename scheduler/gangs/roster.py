"""Which pods are in which groups, counted as they change. Guarded by the lock of the directory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cluster.tables.state import ClusterState
from kube.objects.objects import Phase, PodInfo
from placement.pod_groups.by_annotation import MIN_MEMBER
from placement.pod_groups.labels import group_of, role_of
from placement.pod_groups.pod_group import PodGroupInfo
from scheduler.gangs.gang_attempts import UNTRIED
from scheduler.gangs.known_gang import KnownGang
from scheduler.gangs.members import Member, Members, Standing, standing_of

_COUNTED: Final = frozenset({Standing.SITS, Standing.WAITS})


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
            if member.standing is Standing.WAITS and not is_rebuild and (was is None or was.standing not in _COUNTED):
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
        is_running = pod.phase is Phase.RUNNING
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
