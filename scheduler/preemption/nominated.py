"""Pods for which room is being made on a node, and the filter that keeps that room for them.

    nominated --assumed or bound there--> sits --assumption taken back--> nominated
        +-----deleted, bound elsewhere, node gone, driven out by a pod of higher priority--> no longer

Until its victims are gone they are counted on the node, and so is the nominated pod, by this filter: a later pod that
is no more important finds no room there, and preempts further pods if need be. Pods of other schedulers count by what
their status says (KEP-1923, and KEP-5278 as narrowed in 1.35: kube-scheduler alone writes it): their room may still be
made, or their volumes bound. Where our pods are nominated only this process decides; their status is read once, at the
start.

Members of a gang are nominated together: what is kept for one of them, the others may take, and if the nomination of
one ends before it sits, all of them end.
Source: RunFilterPluginsWithNominatedPods of pkg/scheduler/framework/runtime/framework.go. There nominated pods are
added for all filters; here their requests count, not their labels, ports or volumes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, NodeAdded, NodeChanged, NodeRemoved, PodChange, one_by_one
from cluster.tables.state import ClusterState
from kube.objects.counted_pods import waits
from kube.objects.objects import PodInfo
from placement.cluster_events import EventKind
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.filters.rejections import found
from placement.plugins import Nomination
from scheduler.preemption.nominated_sums import NOMINATED_REASON, Nominated, NominatedSums, fitted, wanted_units

_REFUSED_SECONDS: Final = 300.0
"""Seconds for which a pod is no victim after the API server refused to delete it, because of a policy perhaps."""
_MOST_SEATED: Final = 4096

_PRIORITIES: Final = 16
"""Priorities for which sums are kept; those of others are made when asked for."""


class NominatedPods(NodesAndPodsOnly, PlainFilter):
    """Filter "NominatedPods", and a Follower of the tables. Everything is called under their lock.

    version    : a number that is another one after each change
    evicting   : UIDs of pods for which victims are being evicted at this moment; kept by the executor
    on_withdrawn : called with each of our pods whose nomination ended for a reason outside of the pod itself: its node
                 went, a pod of higher priority took it, or the nomination of another member of its gang ended
    """

    name = "NominatedPods"
    by_requests = True
    woken_by = frozenset(
        {EventKind.POD_LEFT, EventKind.NODE_ADDED, EventKind.NODE_CHANGED, EventKind.UNSCHEDULED_POD_CHANGED}
    )

    def __init__(
        self,
        state: ClusterState,
        *,
        fit: NodeResourcesFit | None = None,
        is_ours: Callable[[PodInfo], bool] = lambda pod: True,
        ended: Callable[[PodInfo, str], None] = lambda pod, node: None,
    ) -> None:
        """
        fit     : the requests that count
        is_ours : whether this process places the pod; others' nominations are theirs to make and to end
        ended   : called with each nomination that ends although the pod was not bound there, and its node: others may
                  have that room
        """
        self._state, self._fit, self._ended = state, fit or NodeResourcesFit(), ended
        self._is_ours = is_ours
        self._by_uid: dict[str, Nominated] = {}
        self._on: dict[int, dict[str, Nominated]] = {}
        self._sums: OrderedDict[int, NominatedSums] = OrderedDict()
        self._unplaced: dict[str, PodInfo] = {}  # of others, nominated to a node that is not known
        self._seated: OrderedDict[str, Nominated] = OrderedDict()  # assumed there, which may be taken back
        self.version = 0
        self.evicting: set[str] = set()
        self._refusing: dict[str, float] = {}  # since when, by UID
        self.on_withdrawn: list[Callable[[PodInfo], object]] = []

    def __len__(self) -> int:
        return len(self._by_uid)

    # Nominations

    def nominate(self, pod: PodInfo, node: str, victims: Collection[str] = (), together: Collection[str] = ()) -> bool:
        """Keep room for a pod, there and nowhere else; nothing happens if there is no such node, or the pod sits.

        victims, together : see Nominated
        """
        row = self._state.row_of.get(node)
        known = self._state.pods.get(pod.uid)
        if row is None or self._state.nodes[row] is None or (known is not None and not waits(known)):
            return False
        self._remove(pod.uid)
        one = Nominated(pod, node, row, wanted_units(pod, self._fit), frozenset(victims), frozenset(together))
        self._by_uid[pod.uid] = one
        self._on.setdefault(row, {})[pod.uid] = one
        self._count(one, 1)
        return True

    def nominate_all(self, seats: Sequence[tuple[PodInfo, Nomination]]) -> bool:
        """Nominate one pod, or members of a gang together, all or none; returns whether that was possible.

        Pods of lower priority are no longer nominated to these nodes.
        """
        together = [pod.uid for pod, _ in seats] if len(seats) > 1 else ()
        for pod, _ in seats:
            self._remove(pod.uid)
        for pod, there in seats:
            self.clear_lower(there.node, pod.priority)
        for pod, there in seats:
            if not self.nominate(pod, there.node, [victim.uid for victim in there.victims], together):
                self.forget(pod.uid for pod, _ in seats)
                return False
        return True

    def clear(self, uid: str) -> Nominated | None:
        """The pod is not nominated any more, nor are those nominated together with it. Returns what it was."""
        one = self._remove(uid)
        if one is not None:
            self._ended(one.pod, one.node)
            for other in self._with(one):
                self._remove(other.pod.uid)
                self._ended(other.pod, other.node)
                self._withdraw(other.pod)
        return one

    def forget(self, uids: Iterable[str]) -> None:
        """These pods are looked at anew: nothing is kept for them, also once an assumption of theirs is taken back."""
        for uid in uids:
            self._seated.pop(uid, None)
            one = self._remove(uid)
            if one is not None:
                self._ended(one.pod, one.node)

    def clear_lower(self, node: str, priority: int) -> None:
        """End nominations of our pods of lower priority on a node that a pod of this priority takes."""
        row = self._state.row_of.get(node)
        there = () if row is None else self._on.get(row, {}).values()
        lower = [one for one in there if one.pod.priority < priority and self._is_ours(one.pod)]
        for one in lower:
            self.clear(one.pod.uid)
            self._withdraw(one.pod)

    def start_over(self, pods: Iterable[PodInfo], gang_of: Callable[[PodInfo], str | None] = lambda pod: None) -> None:
        """Another process may have made room since this one last did: forget all, and adopt what pods say."""
        self.forget(list(self._by_uid))
        self._unplaced.clear()
        self.adopt(pods, gang_of)

    def adopt(self, pods: Iterable[PodInfo], gang_of: Callable[[PodInfo], str | None] = lambda pod: None) -> None:
        """After a start: waiting pods that say in their status where room was made for them, our gangs as a whole."""
        gangs: dict[str, list[PodInfo]] = {}
        for pod in pods:
            if not pod.nominated_node or pod.uid in self._by_uid or not waits(pod):
                continue
            if self._is_ours(pod):
                gangs.setdefault(gang_of(pod) or f"/{pod.uid}", []).append(pod)
            elif not self.nominate(pod, pod.nominated_node):
                self._unplaced[pod.uid] = pod
        for members in gangs.values():
            together = [pod.uid for pod in members] if gang_of(members[0]) else ()
            for pod in members:
                self.nominate(pod, pod.nominated_node, together=together)

    def refuses(self, uid: str, now: float) -> None:
        """Spare a victim that the API server did not delete, for a while. By one thread. now: unix seconds."""
        self._refusing = {one: self._refusing[one] for one in self.refusing(now)} | {uid: now}

    def refusing(self, now: float) -> Collection[str]:
        """UIDs of those. For any thread."""
        # A clock that was set back makes no refusal count for longer.
        return [uid for uid, at in self._refusing.items() if 0 <= now - at < _REFUSED_SECONDS]

    def is_waiting_for_victims(self, uids: Iterable[str]) -> bool:
        """Whether a victim of one of these pods still sits on the node that the pod is nominated to."""
        ours = [one for uid in uids if (one := self._by_uid.get(uid)) is not None]
        return any(self.sits_on(uid, one.row) for one in ours for uid in one.victims)

    def sits_on(self, uid: str, row: int) -> bool:
        """Whether a pod sits on the node of a row."""
        seat = self._state.seat_of.get(uid)
        return seat is not None and seat.node == row

    def of(self, uid: str) -> Nominated | None:
        """Where room is made for a pod; None = nowhere."""
        return self._by_uid.get(uid)

    def rows(self) -> list[int]:
        """Of nodes with nominated pods."""
        return list(self._on)

    def on(self, row: int) -> list[Nominated]:
        """Nominated pods of a node."""
        return list(self._on.get(row, {}).values())

    def kept_from(self, pod: PodInfo, row: int) -> list[Nominated]:
        """Nominated pods of a node of equal or higher priority; neither the pod itself nor its gang."""
        return [one for one in self.on(row) if one.pod.priority >= pod.priority and not self._is_own(one, pod)]

    def others(self, pod: PodInfo) -> list[PodInfo]:
        """Return all nominated pods but the pod itself and its gang."""
        return [one.pod for one in self._by_uid.values() if not self._is_own(one, pod)]

    def leaving(self) -> list[str]:
        """Return UIDs of victims that still sit where room is made for a nominated pod."""
        return [uid for one in self._by_uid.values() for uid in one.victims if self.sits_on(uid, one.row)]

    # Room that is kept

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        """Whether no room is kept from the pod anywhere, whatever comes to sit where: then like pods are placed in
        batches."""
        return not self._by_uid or not self._sums_from(pod.priority).pods.any()

    def kept(self, pod: PodInfo, n_rows: int) -> tuple[Ints, dict[str, Ints]]:
        """What nominated pods of equal or higher priority, the pod itself and its gang apart, will take of each node.

        Returns (n_rows,) pods and, by resource name, (n_rows,) whole units; resources that none requests are missing.
        """
        sums = self._sums_from(pod.priority)
        pods = fitted(sums.pods, n_rows)
        units = {kind: fitted(column, n_rows) for kind, column in sums.units.items()}
        own = self._by_uid.get(pod.uid)
        for one in () if own is None else (own, *self._with(own)):
            if one.pod.priority >= pod.priority and one.row < n_rows:
                pods[one.row] -= 1
                for kind, amount in one.units.items():
                    units[kind][one.row] -= amount
        return pods, units

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Nodes where the pod fits only into room that is kept; preemptible where further evictions could help."""
        if not self._by_uid:
            return ()
        n_rows, state = view.n_rows, view.state
        pods, units = self.kept(pod, n_rows)
        rows = np.flatnonzero(pods > 0)
        if not len(rows):
            return ()
        allocatable, requested = state.allocatable_units[rows], state.requested_units[rows]
        room = allocatable[:, state.kinds["pods"]] - pods[rows]
        lacking: Bools = room <= state.pod_count[rows]
        hopeless: Bools = room <= 0
        for kind, wanted in wanted_units(pod, self._fit).items():
            column = state.kinds.get(kind)
            if column is None or kind not in units:
                continue  # NodeResourcesFit says all there is to say
            room = allocatable[:, column] - units[kind][rows]
            lacking |= room - requested[:, column] < wanted
            hopeless |= room < wanted
        rejections: list[Rejection] = []
        for chosen, preemptible in ((lacking & ~hopeless, True), (hopeless, False)):
            nodes = np.zeros(n_rows, dtype=bool)
            nodes[rows[chosen]] = True
            rejections += found(nodes, view, NOMINATED_REASON, preemptible=preemptible, by_requests=preemptible)
        return rejections

    def tells_apart(self, pod: PodInfo) -> str:
        """The node that the pod is nominated to: what filters say of one pod does not hold for another one's room."""
        one = self._by_uid.get(pod.uid)
        return "" if one is None else one.node

    # Follower

    def apply(self, changes: Sequence[Change]) -> None:
        """Nominations end when the pod comes to sit, goes, or its node goes."""
        if not (self._by_uid or self._seated or self._unplaced or any(map(_says_a_node, changes))):
            return
        for change in one_by_one(changes):
            match change:
                case PodChange(pod, before, after):
                    self._pod_changed(pod, before is not None, after is not None)
                case NodeAdded(row) | NodeChanged(row) | NodeRemoved(row):
                    self._node_changed(row)
                case _:
                    pass

    def rebuild(self) -> None:
        """Drop nominations that the tables know better about."""
        for one in list(self._by_uid.values()):
            self._node_changed(one.row)
            known = self._state.pods.get(one.pod.uid)
            if known is None or not waits(known):
                self.clear(one.pod.uid)

    # Inside

    def _pod_changed(self, pod: PodInfo, sat: bool, sits: bool) -> None:
        one = self._by_uid.get(pod.uid)
        if not self._is_ours(pod):
            self._others_changed(pod, one, sits)
        elif one is None:
            self._seat_changed(pod, sat, sits)
        elif sits:
            self._remove(pod.uid)  # counted where it sits from now on
            # A gang that is tried in vain is taken back, and still has the room that is being made for it.
            if pod.node == one.node or one.together:
                self._seated[pod.uid] = one
                if len(self._seated) > _MOST_SEATED:
                    self._seated.popitem(last=False)
            if pod.node != one.node:
                self._ended(one.pod, one.node)
        elif pod.uid not in self._state.pods or not waits(pod):
            self.clear(pod.uid)
        elif not sat and (pod.priority, pod.requests) != (one.pod.priority, one.pod.requests):
            self.nominate(pod, one.node, one.victims, one.together)

    def _others_changed(self, pod: PodInfo, one: Nominated | None, sits: bool) -> None:
        """Of another scheduler: its status says where, and it may say another node at any time."""
        self._unplaced.pop(pod.uid, None)
        if sits or not pod.nominated_node or pod.uid not in self._state.pods or not waits(pod):
            if one is not None:
                self._remove(pod.uid)
                if not sits or pod.node != one.node:
                    self._ended(one.pod, one.node)
            return
        if one is not None:
            if (one.node, one.pod.priority, one.pod.requests) == (pod.nominated_node, pod.priority, pod.requests):
                return
            self.clear(pod.uid)
        self.adopt([pod])

    def _seat_changed(self, pod: PodInfo, sat: bool, sits: bool) -> None:
        """Of a pod that came to sit where it was nominated: if that is taken back, its room is kept for it again."""
        one = self._seated.get(pod.uid)
        if one is None or not sat or sits:
            return  # a pod that changes where it sits may still be only assumed there
        del self._seated[pod.uid]
        known = self._state.pods.get(pod.uid)
        if known is not None and waits(known):
            # Without victims: it fitted there, even before they had gone. Those of a gang have all been evicted by the
            # time it is tried, and the others of it may need them gone.
            self.nominate(known, one.node, one.victims if one.together else (), one.together)

    def _node_changed(self, row: int) -> None:
        there = self._on.get(row)
        if self._state.nodes[row] is not None:
            if self._unplaced:
                name = self._state.names[row]
                self.adopt(
                    [self._unplaced.pop(uid) for uid, pod in [*self._unplaced.items()] if pod.nominated_node == name]
                )
        elif there:
            for uid in list(there):
                one = self.clear(uid)
                if one is not None and self._is_ours(one.pod):
                    self._withdraw(one.pod)
                elif one is not None:
                    self._unplaced[uid] = one.pod

    def _withdraw(self, pod: PodInfo) -> None:
        for listener in self.on_withdrawn:
            listener(pod)

    def _with(self, one: Nominated) -> list[Nominated]:
        """Others that were nominated together with it and are still."""
        found = (self._by_uid.get(uid) for uid in one.together if uid != one.pod.uid)
        return [other for other in found if other is not None and other.together == one.together]

    def _is_own(self, one: Nominated, pod: PodInfo) -> bool:
        return one.pod.uid == pod.uid or pod.uid in one.together

    def _remove(self, uid: str) -> Nominated | None:
        one = self._by_uid.pop(uid, None)
        if one is not None:
            there = self._on[one.row]
            del there[uid]
            if not there:
                del self._on[one.row]
            self._count(one, -1)
        return one

    def _count(self, one: Nominated, sign: int) -> None:
        self.version += 1
        if not self._by_uid:
            self._sums.clear()  # with columns of resources that no pod requests any more
        for priority, sums in self._sums.items():
            if one.pod.priority >= priority:
                sums.count(one, sign)

    def _sums_from(self, priority: int) -> NominatedSums:
        sums = self._sums.get(priority)
        if sums is None:
            sums = self._sums[priority] = NominatedSums()
            for one in self._by_uid.values():
                if one.pod.priority >= priority:
                    sums.count(one, 1)
            if len(self._sums) > _PRIORITIES:
                self._sums.popitem(last=False)
        self._sums.move_to_end(priority)
        return sums


def _says_a_node(change: Change) -> bool:
    return isinstance(change, PodChange) and bool(change.pod.nominated_node)
