"""Members of each gang, and whether it is complete: follows the tables and the PodGroups, and answers the queue, the
cycle and preemption.

    tables --PodChange--> GangDirectory <--PodGroupSink-- PodGroups
                               |--> unit_of, gate                          the queue
                               |--> in_placing_order, shortfall            the cycle
                               |--> sitting, minimum, breaks_without       preemption
                               '--> report                                 the status writer

The tables' lock is held wherever something changes. The queue also asks under its own lock alone: hence one more lock,
under which no other part is called.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence

from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange, one_by_one
from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo
from placement.pod_groups.group_apis import APIS, OURS, ApiState, GroupApi, api_of
from placement.pod_groups.group_of_pod import group_of, role_of
from placement.pod_groups.minima import Count, are_met, placing_order, shortfall
from placement.pod_groups.pod_group import ANYWHERE, GroupTopology, PodGroupInfo
from placement.status import SUCCESS, Code, Status
from scheduler.gangs.gang_gate import (
    UNTRIED,
    GangVerdict,
    Reason,
    misfit,
    passes,
    reason_of,
    timeout_of,
    verdict_on,
    verdict_without_group,
)
from scheduler.gangs.group_status import Report, report_on
from scheduler.gangs.members import sizes_of
from scheduler.gangs.roster import KnownGang, Roster
from scheduler.loop_settings import GangOptions
from scheduler.queue.queued_pods import UnitOf, unit_by_owner

GATE = "Gang"
"""Name of the plugin."""


class GangDirectory(NodesAndPodsOnly):
    """Implements the queue's Units and cluster.follower.Follower.

    listeners      : called with the key of a group whose gate may have changed, under the caller's locks; keep it quick
    late_listeners : called after those with the key of a group whose timeout has passed between two attempts
    """

    def __init__(
        self,
        state: ClusterState,
        *,
        options: GangOptions | None = None,
        is_ours: Callable[[PodInfo], bool] = lambda pod: True,
        is_assumed: Callable[[str], bool] = lambda uid: False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Starts from what the state holds now.

        is_ours    : whether a pod that waits is ours to place
        is_assumed : whether the pod of this UID is only assumed to sit where the state has it
        clock      : unix seconds
        """
        self.listeners: list[Callable[[str], None]] = []
        self.late_listeners: list[Callable[[str], None]] = []
        self._state, self._options, self._clock = state, options or GangOptions(), clock
        self._lock = threading.Lock()
        self._roster = Roster(state, is_ours, is_assumed)
        self._gangs = self._roster.gangs
        self._apis = dict.fromkeys(APIS, ApiState.NOT_READ)
        self._later: set[str] = set()  # reported with an older message, or paused
        self._changed: set[str] = set()  # since `take_changed`
        self.rebuild()

    # What happens

    def apply(self, changes: Sequence[Change]) -> None:
        """Follow what happened to pods."""
        pods = [change.pod for change in one_by_one(changes) if isinstance(change, PodChange)]
        uids = [pod.uid for pod in pods if self._concerns(pod)]
        if uids:
            with self._lock:
                touched = self._roster.count(uids)
            self._settle(touched)

    def rebuild(self) -> None:
        """Count all pods anew."""
        with self._lock:
            touched = dict.fromkeys(self._gangs)
            self._roster.forget_pods()
            touched.update(dict.fromkeys(self._roster.count(self._state.pods, is_rebuild=True)))
        self._settle(touched)

    def replace_groups(self, groups: Sequence[PodGroupInfo], api: GroupApi = OURS, *, is_served: bool = True) -> None:
        """These are all PodGroups of the API; none, where the API server does not serve it."""
        state = ApiState.READ if is_served else ApiState.ABSENT
        with self._lock:
            there, known = {group.key for group in groups}, [key for key in self._gangs if api_of(key) is api]
            touched = dict.fromkeys(key for key in known if self._gangs[key].info and key not in there)
            for key in touched:
                self._set_info(key, None)
            for group in groups:
                if self._set_info(group.key, group):
                    touched[group.key] = None
            if self._apis[api] is not state:
                self._apis[api] = state
                touched.update(dict.fromkeys(known))
        self._settle(touched)

    def put_group(self, group: PodGroupInfo) -> None:
        """A PodGroup is new or has changed."""
        with self._lock:
            differs = self._set_info(group.key, group)
        if differs:
            self._settle([group.key])

    def delete_group(self, group: PodGroupInfo) -> None:
        """A PodGroup is gone."""
        with self._lock:
            self._set_info(group.key, None)
        self._settle([group.key])

    def tick(self) -> None:
        """Notify of timeouts and pauses that have passed, and of messages that are out of date; call every second."""
        with self._lock:
            later, self._later = self._later, set()
            now = self._clock()
            late = [key for key, gang in self._gangs.items() if gang.has_become_late(now, self._options)]
        self._settle(later.union(late), with_words=True)
        for listener in self.late_listeners:
            for key in late:
                listener(key)

    def scheduled(self, group: str, n: int) -> None:
        """Note that members have just been given a node."""
        with self._lock:
            gang = self._gangs.get(group)
            if gang is None or n <= 0:
                return
            gang.attempts = UNTRIED
        self._settle([group])

    def attempt_failed(self, group: str, message: str, diagnosis: str = "", *, makes_room: bool = False) -> None:
        """The group could not be placed as a whole.

        message    : how far it came: "8 of 16 members fit"; diagnosis: why no further: "0/100 nodes are available: ..."
        makes_room : victims go for it
        """
        with self._lock:
            gang = self._gangs.get(group)
            if gang is None or gang.info is None:
                return
            text = ": ".join(filter(None, (message, diagnosis)))
            now = self._clock()
            timeout = timeout_of(gang.info, self._options)
            gang.attempts = gang.attempts.failed(now, text, timeout=timeout, makes_room=makes_room)
        self._settle([group])

    # The queue

    def group_of(self, pod: PodInfo) -> str | None:
        """ "namespace/name" of the PodGroup that its label names."""
        return group_of(pod)

    def unit_of(self, pod: PodInfo) -> UnitOf:
        """A gang, the pods of one controller, or the pod alone. Keys of gangs are those of their groups."""
        group = group_of(pod)
        if group is not None:
            gang = self._gangs.get(group)
            info = None if gang is None else gang.info
            if info is None or not info.is_basic:
                return UnitOf(group, None if info is None else info.created, True)
        return unit_by_owner(pod)

    def gate(self, pod: PodInfo) -> Status:
        """Whether the pod's group, if it is in one, has all members that it needs."""
        group = group_of(pod)
        if group is None:
            return SUCCESS
        with self._lock:
            gang = self._gangs.get(group)
            if gang is None:
                return Status(Code.UNRESOLVABLE, GATE, self._without_group(group).message)
            if gang.info is not None and (why := misfit(pod, gang.info)):
                return Status(Code.UNRESOLVABLE, GATE, why)
            return self._answer(group, gang)

    # The cycle

    def in_placing_order(self, group: str, pods: Sequence[PodInfo]) -> list[int]:
        """Positions of pods to be placed; those that fill the minimum of a role before others, see placing_order."""
        with self._lock:
            gang = self._gangs.get(group)
            if gang is None or gang.info is None:
                return list(range(len(pods)))
            return placing_order(gang.info.minima, self._seated(gang), [role_of(pod) for pod in pods], sizes_of(pods))

    def shortfall(self, group: str, placed: Sequence[PodInfo]) -> str:
        """'' = the members that sit and these meet the minima; else what falls short: "3 of 4 members"."""
        with self._lock:
            gang = self._gangs.get(group)
            if gang is None or gang.info is None:
                return self._without_group(group).message
            if gang.info.problem:
                return self._verdict(group, gang).message
            sitting = gang.members.sitting
            new = {pod.uid: role_of(pod) for pod in placed if pod.uid not in sitting}  # assumed ones sit already
            return shortfall(gang.info.minima, self._seated(gang).plus(list(new.values())))

    # Plugins that look at a gang as a whole

    def topology(self, group: str) -> GroupTopology:
        """How close together its members are to be; of a group that is not there, or cannot be used: anywhere."""
        with self._lock:
            gang = self._gangs.get(group)
            return ANYWHERE if gang is None or gang.info is None or gang.info.problem else gang.info.topology

    def waiting(self, group: str) -> Sequence[PodInfo]:
        """Members that may be placed by us and have no node, not even an assumed one."""
        with self._lock:
            gang = self._gangs.get(group)
            return [] if gang is None else list(gang.members.waiting.values())

    # Preemption

    def sitting(self, group: str) -> Sequence[PodInfo]:
        """Members that have a node, assumed ones included, terminating ones not."""
        with self._lock:
            gang = self._gangs.get(group)
            return [] if gang is None else list(gang.members.sitting.values())

    def minimum(self, group: str) -> int:
        """Return the fewest members that can run; 0 = there is no such PodGroup, or it is unusable."""
        with self._lock:
            gang = self._gangs.get(group)
            return 0 if gang is None or gang.info is None or gang.info.problem else gang.info.minima.needed

    def breaks_without(self, group: str, uids: Collection[str]) -> bool:
        """Whether all others have to go with these members (Disruption); no, if none of these sits."""
        with self._lock:
            gang = self._gangs.get(group)
            if gang is None:
                return False
            gone = [uid for uid in dict.fromkeys(uids) if uid in gang.members.sitting]
            return gang.breaks_without(self._roster.roles(gone))

    # Groups by annotation

    def stated(self) -> list[tuple[PodInfo, PodGroupInfo | None]]:
        """As Roster.stated; nothing while PodGroups are not read, or not installed."""
        with self._lock:
            return self._roster.stated() if self._apis[OURS] is ApiState.READ else []

    def explain_missing(self, group: str, why: str) -> None:
        """Why it has not been created, for its pods; '' = it will be soon."""
        with self._lock:
            gang = self._gangs.get(group)
            if gang is None or gang.why_missing == why:
                return
            gang.why_missing = why
        self._settle([group])

    # Status

    def take_changed(self) -> set[str]:
        """Groups whose report may be another one since the last call."""
        with self._lock:
            changed, self._changed = self._changed, set()
            return changed

    def report(self, group: str) -> Report | None:
        """What there is to say of a group; None = there is no such PodGroup."""
        with self._lock:
            gang = self._gangs.get(group)
            if gang is None or gang.info is None:
                return None
            return report_on(gang.info, gang.members, self._verdict(group, gang), complete_since=gang.complete_since)

    def longest_wait(self) -> float:
        """Seconds since the first vain attempt at the complete group that has waited longest; 0 = none waits so."""
        with self._lock:
            tried = [g.attempts.first_failed for g in self._gangs.values() if g.attempts.first_failed is not None]
            return max(0.0, self._clock() - min(tried)) if tried else 0.0

    def __len__(self) -> int:
        """Groups that exist or that pods name."""
        return len(self._gangs)

    # Inside

    def _concerns(self, pod: PodInfo) -> bool:
        return pod.uid in self._roster.member_of or group_of(pod) is not None

    def _set_info(self, key: str, info: PodGroupInfo | None) -> bool:
        """Whether it asks for something else than before."""
        if info is None and key not in self._gangs:
            return False
        gang = self._gangs.setdefault(key, KnownGang())
        before, gang.info = gang.info, info
        self._changed.add(key)
        if info is not None and info.says_the_same(before):
            return False
        gang.attempts = UNTRIED
        if before is None or info is None or before.uid != info.uid:
            gang.complete_since = None
        return True

    def _settle(self, keys: Iterable[str], *, with_words: bool = False) -> None:
        """Find out the state of these groups now, and notify listeners.

        with_words : also where nothing but the words has changed; else those wait for `tick`, so that members that come
                     one by one are not all asked about again each time
        """
        tell = []
        with self._lock:
            for key in keys:
                gang = self._gangs.get(key)
                if gang is None:
                    continue
                self._changed.add(key)
                if gang.info is None and not len(gang.members):
                    self._roster.forget_group(key)
                    continue
                self._look(key, gang)
                kind = None if self._passes(gang) else gang.reason
                is_new = kind is not gang.told_kind
                if is_new or (with_words and self._answer(key, gang).reason != gang.told_words):
                    gang.told_kind, gang.told_words = kind, self._answer(key, gang).reason
                    tell.append(key)
                elif kind is not None and not with_words:
                    self._later.add(key)
                if kind is Reason.TIMEOUT:
                    self._later.add(key)  # until the pause is over
        for key in tell:
            for listener in self.listeners:
                listener(key)

    def _look(self, key: str, gang: KnownGang) -> None:
        """After each change. Attempts are those of a complete group that does not sit yet."""
        gang.closed, info = None, gang.info
        if info is None:
            gang.reason = Reason.NOT_READ if self._apis[api_of(key)] is ApiState.NOT_READ else Reason.MISSING
            return
        is_seated = are_met(info.minima, self._seated(gang))
        is_complete = is_seated or are_met(info.minima, gang.members.present(info.minima))
        if gang.attempts is not UNTRIED:
            # Assumed members may be released before they are bound.
            is_bound = is_seated and are_met(info.minima, gang.members.confirmed(info.minima))
            if is_bound or not is_complete:
                gang.attempts = UNTRIED
        if is_complete and gang.complete_since is None and not info.problem:
            gang.complete_since = self._clock()
        gang.reason = reason_of(info, gang.attempts, is_seated=is_seated, is_complete=is_complete)

    def _passes(self, gang: KnownGang) -> bool:
        return passes(gang.reason, gang.attempts, self._options, self._clock())

    def _answer(self, key: str, gang: KnownGang) -> Status:
        if self._passes(gang):
            return SUCCESS
        if gang.closed is None:
            gang.closed = Status(Code.UNRESOLVABLE, GATE, self._verdict(key, gang).message)
        return gang.closed

    def _verdict(self, key: str, gang: KnownGang) -> GangVerdict:
        if gang.info is None:
            return self._without_group(key)
        return verdict_on(gang.reason, gang.info, gang.members, gang.attempts, self._options, self._clock())

    def _without_group(self, key: str) -> GangVerdict:
        gang = self._gangs.get(key)
        return verdict_without_group(key, self._apis[api_of(key)], "" if gang is None else gang.why_missing)

    @staticmethod
    def _seated(gang: KnownGang) -> Count:
        assert gang.info is not None
        return gang.members.seated(gang.info.minima)
