"""Which room is held for pods that are still to come, and which pod has taken it over.

    held --a pod of its owners is assumed or bound on the node--> taken --that assumption ends--> held
      |                                                            +-----the pod is bound-------> taken for good
      +--its time is over, or its object says so--> gone

A pod takes one room at most, and a room is taken by one pod at most. Decides; the owner of the tables puts stand-ins
in and out. What bound pods say decides, so that all processes, and those after a restart, come to the same answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from kube.objects.constraints import LabelSelector
from kube.objects.counted_pods import sits
from kube.objects.labels import selector_matches
from kube.objects.objects import RESERVATION, PodInfo


@dataclass(frozen=True, slots=True)
class HeldRoom:
    """
    stand_in : holds the room in the tables, on its node; its UID is that of the room
    owners   : selects the pods of the same namespace that may take it over
    since    : unix seconds from which it is held
    until    : unix seconds when it expires
    """

    stand_in: PodInfo
    owners: LabelSelector
    since: float
    until: float

    @property
    def uid(self) -> str:
        """Return the UID of the Reservation."""
        return self.stand_in.uid

    def is_for(self, pod: PodInfo) -> bool:
        """Return whether the pod is one of its owners."""
        return (
            pod.namespace == self.stand_in.namespace
            and not pod.stands_in
            and bool(self.owners.requirements)
            and selector_matches(self.owners, pod.labels)
        )

    def is_taken_by(self, pod: PodInfo) -> bool:
        """Return whether the pod, which is bound, has taken it over, as far as the pod alone can say.

        One that our loops bound names the room. Others took it if they came to the node while it was held there.
        """
        if pod.node != self.stand_in.node or not sits(pod) or not self.is_for(pod):
            return False
        named = pod.annotations.get(RESERVATION)
        if named is not None:
            return named == self.uid
        return pod.scheduled is not None and self.since <= pod.scheduled < self.until


@dataclass(frozen=True, slots=True)
class Taker:
    """A pod that has taken a room; it may be gone meanwhile."""

    name: str
    uid: str


class HeldRooms:
    """Everything is called under the lock of the tables."""

    def __init__(self, now: float = 0.0) -> None:
        """now: unix seconds"""
        self._now = now
        self._rooms: dict[str, HeldRoom] = {}
        self._of_namespace: dict[str, set[str]] = {}
        self._taken: dict[str, Taker] = {}  # by UID of the room
        self._room_of: dict[str, str] = {}  # the other way round
        self.version = 0  # another number whenever a pod may have another room, or none
        self._served: set[str] = set()  # UIDs of bound pods that have taken one, which may be gone: they take no other

    def __len__(self) -> int:
        """Rooms that are held or taken."""
        return len(self._rooms)

    def __iter__(self) -> Iterator[HeldRoom]:
        return iter(self._rooms.values())

    def get(self, uid: str) -> HeldRoom | None:
        """Return a room by its UID."""
        return self._rooms.get(uid)

    def put(self, room: HeldRoom) -> None:
        """The room is new or has changed."""
        self.version += 1
        self._rooms[room.uid] = room
        self._of_namespace.setdefault(room.stand_in.namespace, set()).add(room.uid)

    def drop(self, uid: str) -> None:
        """The room is held no longer, whether a pod has taken it or not."""
        self.version += 1
        room = self._rooms.pop(uid, None)
        if room is not None:
            self._of_namespace[room.stand_in.namespace].discard(uid)
        if (taker := self._taken.pop(uid, None)) is not None:
            self._room_of.pop(taker.uid, None)

    def serve(self, pod: str) -> None:
        """A bound pod has taken a room, now or before this process began: it takes no other."""
        self._served.add(pod)

    def forget(self, pod: str) -> None:
        """The pod is gone."""
        self._served.discard(pod)

    def forget_others(self, pods: Collection[str]) -> None:
        """These are all pods."""
        self._served.intersection_update(pods)

    def tick(self, now: float) -> list[str]:
        """Time has passed; returns UIDs of rooms whose time is over. A room that a pod has taken stays until its object
        says so."""
        self._now = now
        return [uid for uid, room in self._rooms.items() if now >= room.until and uid not in self._taken]

    def taker(self, uid: str) -> Taker | None:
        """Return the pod that has taken a room; None = it is held."""
        return self._taken.get(uid)

    def taken_by(self, pod: str) -> str | None:
        """Return the UID of the room that a pod has taken; None = none. For any thread."""
        return self._room_of.get(pod)

    def open_for(self, pod: PodInfo) -> list[HeldRoom]:
        """Return rooms that are held for a pod: the one that it names first, then the oldest."""
        return [room for room in self._free_for(pod) if self._now < room.until]

    def _free_for(self, pod: PodInfo) -> list[HeldRoom]:
        """The same with rooms whose time is over: a bound pod may have taken one before."""
        here = self._of_namespace.get(pod.namespace)
        if not here or pod.uid in self._room_of or pod.uid in self._served:
            return []
        found = [room for uid in here if uid not in self._taken and (room := self._rooms[uid]).is_for(pod)]
        named = pod.annotations.get(RESERVATION)
        return sorted(found, key=lambda room: (room.uid != named, room.since, room.uid))

    def owed(self, pod: PodInfo, node: str) -> HeldRoom | None:
        """Return the room that a pod takes if it is assumed on the node; None = none."""
        return next((room for room in self.open_for(pod) if room.stand_in.node == node), None)

    def taken_where_bound(self, pod: PodInfo) -> HeldRoom | None:
        """Return the room that a bound pod takes; None = none."""
        if not self._rooms or pod.uid in self._room_of or not sits(pod):
            return None
        return next((room for room in self._free_for(pod) if room.is_taken_by(pod)), None)

    def takers_among(self, rooms: Iterable[HeldRoom], pods: Iterable[PodInfo]) -> Iterator[tuple[HeldRoom, PodInfo]]:
        """Yield rooms with the bound pods that have taken them: those that name a room first, then by age."""
        nodes = {(room.stand_in.namespace, room.stand_in.node) for room in rooms if room.uid not in self._taken}
        if not nodes:
            return
        there = [pod for pod in pods if (pod.namespace, pod.node) in nodes and not pod.stands_in]
        for pod in sorted(there, key=lambda one: (RESERVATION not in one.annotations, one.scheduled or 0.0, one.uid)):
            if (room := self.taken_where_bound(pod)) is not None:
                yield room, pod

    def take(self, room: HeldRoom, pod: PodInfo) -> None:
        """The pod has the room from now on."""
        self.version += 1
        self._taken[room.uid], self._room_of[pod.uid] = Taker(pod.name, pod.uid), room.uid

    def returned(self, pod: str) -> HeldRoom | None:
        """The pod does not take its room after all; returns the room, None = it had none."""
        uid = self._room_of.pop(pod, None)
        if uid is None:
            return None
        self.version += 1
        del self._taken[uid]
        return self._rooms[uid]
