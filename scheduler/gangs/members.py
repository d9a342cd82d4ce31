"""Who is in a group, and which of them count: kept in sums, so that a group of thousands costs no walk over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from enum import IntEnum, auto
from typing import NamedTuple, TypeVar

from kube.objects.objects import PodInfo, PodPhase
from placement.pod_groups.minima import Count, Minima

K = TypeVar("K", bound=Hashable)


class MemberStanding(IntEnum):
    """What a member is to its group. A number, since those are hashed at once: sums have it as their key.

    SITS      : has a node, or is assumed to; the group can count on it
    WAITS     : may be placed by us
    GATED     : is held back by a scheduling gate
    FOREIGN   : waits for another scheduler
    LEAVING   : is being deleted
    SUCCEEDED : has done its part
    FAILED
    """

    SITS = auto()
    WAITS = auto()
    GATED = auto()
    FOREIGN = auto()
    LEAVING = auto()
    SUCCEEDED = auto()
    FAILED = auto()


_LIVING = frozenset({MemberStanding.SITS, MemberStanding.WAITS, MemberStanding.GATED, MemberStanding.FOREIGN})


def standing_of(pod: PodInfo, *, sits: bool, is_ours: bool) -> MemberStanding:
    """sits: it has a seat in the tables, bound or assumed; is_ours: by its scheduler name."""
    if pod.phase is PodPhase.SUCCEEDED:
        return MemberStanding.SUCCEEDED
    if pod.phase is PodPhase.FAILED:
        return MemberStanding.FAILED
    if pod.terminating:
        return MemberStanding.LEAVING
    if sits:
        return MemberStanding.SITS
    if not is_ours:
        return MemberStanding.FOREIGN
    return MemberStanding.GATED if pod.gates else MemberStanding.WAITS


def sizes_of(pods: Sequence[PodInfo]) -> list[float]:
    """Of each pod the sum of its shares of the most that one of them requests, resource by resource."""
    most: dict[str, float] = {}
    for pod in pods:
        for kind, amount in pod.requests.items():
            most[kind] = max(most.get(kind, 0.0), amount)
    return [sum(amount / most[kind] for kind, amount in pod.requests.items() if most[kind] > 0) for pod in pods]


class Member(NamedTuple):
    """As what a pod is counted. Pods that are alike in this are counted together.

    is_assumed : it sits, and the watch has not said so yet
    is_ours    : it names us as its scheduler
    owner      : UID of its controller, '' = none
    is_running : its phase is Running
    """

    role: str
    standing: MemberStanding
    is_assumed: bool = False
    is_ours: bool = True
    owner: str = ""
    is_running: bool = False

    def is_confirmed_by(self, now: Member) -> bool:
        """Whether nothing has changed but that the watch shows the pod on its node."""
        return self.is_assumed and not now.is_assumed and self == now._replace(is_assumed=True)


class Members:
    """Of one group.

    sitting : by UID
    waiting : by UID, those that may be placed by us
    ours    : how many name us as their scheduler
    """

    def __init__(self) -> None:
        self.sitting: dict[str, PodInfo] = {}
        self.waiting: dict[str, PodInfo] = {}
        self._members: Counter[MemberStanding] = Counter()
        self._by_role: Counter[tuple[MemberStanding, str]] = Counter()
        self._running = self.ours = 0
        self._assumed: Counter[str] = Counter()  # of those that sit, by role
        # A pod that has succeeded counts while a living one of its controller is there: the same run, in which a
        # member that failed is made again. What an earlier run left behind does not.
        self._living: Counter[str] = Counter()
        self._succeeded: dict[str, Counter[str]] = {}

    def __len__(self) -> int:
        """Pods, whatever they are up to."""
        return self._members.total()

    def put(self, pod: PodInfo, standing: MemberStanding) -> None:
        """Note a pod as it is now; `count` counts it."""
        uid = pod.uid
        self.sitting.pop(uid, None)
        self.waiting.pop(uid, None)
        if standing is MemberStanding.SITS:
            self.sitting[uid] = pod
        elif standing is MemberStanding.WAITS:
            self.waiting[uid] = pod

    def drop(self, uid: str) -> None:
        """Note that a pod is in the group no longer."""
        self.sitting.pop(uid, None)
        self.waiting.pop(uid, None)

    def number(self, standing: MemberStanding) -> int:
        return self._members[standing]

    @property
    def running(self) -> int:
        """Those that sit whose phase is Running."""
        return self._running

    def seated(self, minima: Minima) -> Count:
        """What meets the minima now: members that sit, and have succeeded."""
        return self._total((MemberStanding.SITS,), minima)

    def confirmed(self, minima: Minima) -> Count:
        """`seated` without those that are only assumed to sit."""
        count, assumed = self.seated(minima), self._assumed
        if not assumed:
            return count
        by_role = {role: number - assumed[role] for role, number in count.by_role.items()}
        return Count(count.members - assumed.total(), by_role)

    def present(self, minima: Minima) -> Count:
        """What may meet the minima: those, and the ones that wait for us."""
        return self._total((MemberStanding.SITS, MemberStanding.WAITS), minima)

    def without(self, roles: Sequence[str], minima: Minima) -> Count:
        """`seated` without members of these roles that sit."""
        count, gone = self.seated(minima), Counter(roles)
        by_role = {role: number - gone[role] for role, number in count.by_role.items()}
        return Count(count.members - len(roles), by_role)

    def _total(self, standings: tuple[MemberStanding, ...], minima: Minima) -> Count:
        found, by_role = self._members.get, {}
        members = sum([found(one, 0) for one in standings])
        if minima.by_role:
            of = self._by_role.get
            by_role = {role: sum([of((one, role), 0) for one in standings]) for role in minima.by_role}
        for owner, succeeded in self._succeeded.items():
            if owner in self._living:
                members += succeeded.total()
                for role in by_role:
                    by_role[role] += succeeded[role]
        return Count(members, by_role)

    def count(self, member: Member, number: int) -> None:
        """Count more pods of this kind, or fewer."""
        standing, role, owner = member.standing, member.role, member.owner
        _add(self._members, standing, number)
        self.ours += number * member.is_ours
        if role:
            _add(self._by_role, (standing, role), number)
        if standing is MemberStanding.SITS:
            self._running += number * member.is_running
            if member.is_assumed:
                _add(self._assumed, role, number)
        if not owner:
            return
        if standing in _LIVING:
            _add(self._living, owner, number)
        elif standing is MemberStanding.SUCCEEDED:
            succeeded = self._succeeded.setdefault(owner, Counter())
            _add(succeeded, role, number)
            if not succeeded:
                del self._succeeded[owner]


def _add(counter: Counter[K], key: K, number: int) -> None:
    """Without keys of nothing: roles and owners are whatever people write."""
    now = counter.get(key, 0) + number
    if now:
        counter[key] = now
    else:
        counter.pop(key, None)
