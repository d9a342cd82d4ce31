"""Which pods are in which groups, counted as they change. Guarded by the lock of the directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from extender.framework.gangs.by_annotation import MIN_MEMBER
from extender.framework.gangs.known_gang import KnownGang
from extender.framework.gangs.labels import group_of, role_of
from extender.framework.gangs.members import Member, Members, standing_of
from extender.framework.gangs.pod_group import PodGroupInfo
from scorer.cluster.objects import PodInfo
from scorer.cluster.state import ClusterState

__all__ = ["Roster"]


class Roster:
    """
    gangs     : by key, groups that exist or that pods name
    member_of : by UID of the pod, its group, and as what it was counted
    """

    def __init__(
        self, state: ClusterState, is_ours: Callable[[PodInfo], bool], is_assumed: Callable[[str], bool]
    ) -> None:
        """Arguments as of GangDirectory. Counts none before `count`."""
        self.gangs: dict[str, KnownGang] = {}
        self.member_of: dict[str, tuple[str, Member]] = {}
        self._annotated: set[str] = set()  # groups of pods that state a minimum by annotation
        self._state, self._is_ours, self._is_assumed = state, is_ours, is_assumed

    def count(self, uid: str) -> list[str]:
        """Count a pod as it is now, or no longer; the groups whose members have changed by that."""
        touched = []
        before = self.member_of.pop(uid, None)
        if before is not None:
            key, member = before
            self.gangs[key].members.remove(member)
            touched.append(key)
        pod = self._state.pods.get(uid)
        group = None if pod is None else group_of(pod)
        if pod is not None and group is not None:
            is_ours = self._is_ours(pod)
            standing = standing_of(pod, sits=uid in self._state.seat_of, is_ours=is_ours)
            member = Member(pod, role_of(pod), standing, self._is_assumed(uid), is_ours)
            self.gangs.setdefault(group, KnownGang()).members.add(member)
            self.member_of[uid] = (group, member)
            if is_ours and MIN_MEMBER in pod.annotations:
                self._annotated.add(group)
            touched.append(group)
        return touched

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
